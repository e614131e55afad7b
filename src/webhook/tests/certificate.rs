//! Certificates by a made-up clock.

use super::*;

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;

fn at(secs: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(secs))
}

fn of_the_service() -> Vec<String> {
    names("slotwright-webhook", "slotwright-system")
}

#[test]
fn a_certificate_is_renewed_at_two_thirds_of_its_lifetime() {
    let names = of_the_service();
    let made = make(&names, at(NOW), None).unwrap();
    for (after, due) in [
        (0, false),
        (1, false),
        (59 * DAY, false),
        (60 * DAY, false),
        (60 * DAY + 1, true),
        (90 * DAY + 1, true),
    ] {
        assert_eq!(made.due(&names, at(NOW + after)).is_some(), due, "after {after} s");
    }
    // The clock of another replica is late, or the machine's clock was wrong when the certificate was made.
    assert!(made.due(&names, at(NOW - 60)).is_none());
    assert!(made.due(&names, at(NOW - DAY)).is_some());
}

#[test]
fn a_certificate_that_cannot_be_used_is_due() {
    let names = of_the_service();
    let (one, other) = (make(&names, at(NOW), None).unwrap(), make(&names, at(NOW), None).unwrap());
    let longest = ["a".repeat(63), "b".repeat(63)];
    for (what, certificate, names) in [
        ("another's key", Certificate { key: other.key.clone(), ..one.clone() }, &names),
        (
            "another's authority",
            Certificate { authorities: other.authorities.clone(), ..one.clone() },
            &names,
        ),
        ("no authority", Certificate { authorities: String::new(), ..one.clone() }, &names),
        ("no PEM", Certificate { certificate: "x".to_owned(), ..one.clone() }, &names),
        ("no key", Certificate { key: String::new(), ..one.clone() }, &names),
        ("another Service", one.clone(), &super::names("slotwright-webhook", "hpc")),
    ] {
        assert!(certificate.due(names, at(NOW)).is_some(), "{what}");
    }
    assert!(one.due(&names, at(NOW)).is_none());
    // The name of a Service has at most 63 characters, and so has that of a namespace.
    let names = super::names(&longest[0], &longest[1]);
    assert!(make(&names, at(NOW), None).unwrap().due(&names, at(NOW)).is_none());
}

#[test]
fn clients_of_a_renewed_certificate_believe_the_certificate_before_too() {
    let names = of_the_service();
    let first = make(&names, at(NOW), None).unwrap();
    let second = make(&names, at(NOW + 61 * DAY), Some(&first)).unwrap();
    let old = Certificate { authorities: second.authorities.clone(), ..first.clone() };
    assert!(old.believed(&names, at(NOW + 61 * DAY)).is_ok());
    // The bundle has two authorities, however often the certificate is renewed.
    let third = make(&names, at(NOW + 122 * DAY), Some(&second)).unwrap();
    let count = |one: &Certificate| one.authorities.matches("BEGIN CERTIFICATE").count();
    assert_eq!([count(&first), count(&second), count(&third)], [1, 2, 2]);
    assert!(third.due(&names, at(NOW + 122 * DAY)).is_none());
    let broken = Certificate { authorities: "-----END CERTIFICATE-----".to_owned(), ..first };
    assert!(make(&names, at(NOW), Some(&broken)).unwrap().due(&names, at(NOW)).is_none());
}
