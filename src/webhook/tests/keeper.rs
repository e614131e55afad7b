//! What is written where.

use super::*;

#[test]
fn only_the_bundle_of_webhooks_that_lack_it_is_written() {
    let bundle = |text: &str| ByteString(text.as_bytes().to_vec());
    let of = |webhooks: Value| -> ValidatingWebhookConfiguration {
        serde_json::from_value(json!({"metadata": {"name": "slotwright"}, "webhooks": webhooks})).unwrap()
    };
    let webhook = |name: &str, has: Option<&str>| {
        json!({"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
               "clientConfig": {"service": {"name": "s", "namespace": "n"}, "caBundle": has.map(bundle)}})
    };
    let (new, old, none) = (webhook("a", Some("new")), webhook("b", Some("old")), webhook("c", None));
    let to = |name: &str| json!({"name": name, "clientConfig": {"caBundle": bundle("new")}});
    for (webhooks, written) in [
        (json!([]), None),
        (json!([new]), None),
        (json!([new, old, none]), Some(json!({"webhooks": [to("b"), to("c")]}))),
    ] {
        let found = of(webhooks);
        let found =
            found.webhooks.iter().flatten().map(|webhook| (webhook.name.as_str(), &webhook.client_config));
        assert_eq!(bundle_patch(found, "new"), written);
    }
}

#[test]
fn a_secret_without_all_parts_holds_no_certificate() {
    let part = |key: &str| (key.to_owned(), ByteString(b"x".to_vec()));
    let all = [part(CERTIFICATE), part(KEY), part(AUTHORITIES)];
    assert!(stored(&all.clone().into()).is_some());
    for missing in 0..3 {
        let mut some = all.to_vec();
        some.remove(missing);
        assert!(stored(&some.into_iter().collect()).is_none());
    }
    let [mut text, key, authorities] = all;
    text.1 = ByteString(vec![0xff]);
    assert!(stored(&[text, key, authorities].into()).is_none(), "not text");
}
