//! Which NodePolicy governs a machine, and how policies get into each other's way.
//!
//! If several policies select a machine, the policy with the greatest precedence counts; among equals, the first by name.

use std::collections::BTreeMap;

use crate::pool::{MachineName, NodePolicy, PolicyName, Pool, Problem};

/// The policies that come first on a machine with these labels: of those that select the machine, those of the greatest precedence, by
/// name. The first governs the machine.
pub fn foremost(
    policies: &BTreeMap<PolicyName, NodePolicy>,
    labels: &BTreeMap<String, String>,
) -> Vec<PolicyName> {
    let selecting = || policies.iter().filter(|(_, policy)| policy.selection.selector.selects(labels));
    let greatest = selecting().map(|(_, policy)| policy.selection.precedence).max();
    let first = selecting().filter(|(_, policy)| Some(policy.selection.precedence) == greatest);
    first.map(|(name, _)| name.clone()).collect()
}

/// The problem that a policy never counts, whatever labels nodes have: another policy selects every node that this one selects, and goes
/// before it. If several policies only together select every node that this one selects, this is not found.
pub fn shadowed(policies: &BTreeMap<PolicyName, NodePolicy>, name: &PolicyName) -> Option<Problem> {
    let own = policies.get(name)?;
    let goes_before = |other: &NodePolicy, named: &PolicyName| {
        let (theirs, ours) = (other.selection.precedence, own.selection.precedence);
        theirs > ours || (theirs == ours && named < name)
    };
    let mut others = policies.iter().filter(|(other, policy)| goes_before(policy, other));
    let (other, _) = others.find(|(_, policy)| policy.selection.selector.covers(&own.selection.selector))?;
    Some(Problem {
        reason: "Shadowed",
        field: "metadata.name".to_owned(),
        message: format!(
            "NodePolicy {other} selects every node that this one selects, and always counts instead; merge the two, or give this one a \
             greater precedence"
        ),
    })
}

/// The problem that policies get into each other's way: this policy never counts, or on some machine only the names of this policy and
/// of others decide which one counts. `None` if neither is so.
pub fn overlap(pool: &Pool, name: &PolicyName) -> Option<Problem> {
    shadowed(pool.policies(), name).or_else(|| tied(pool, name))
}

/// The problem that machines are selected by this policy and by others of the same precedence.
fn tied(pool: &Pool, name: &PolicyName) -> Option<Problem> {
    let mut ties: BTreeMap<&PolicyName, (u64, &MachineName)> = BTreeMap::new();
    for machine in pool.machines().values().filter(|machine| machine.tied.contains(name)) {
        for other in machine.tied.iter().filter(|other| *other != name) {
            ties.entry(other).or_insert((0, &machine.facts.name)).0 += 1;
        }
    }
    let parts: Vec<String> = ties.into_iter().map(|(other, (count, example))| {
        let such_as = if count > 1 { "such as " } else { "" };
        format!("NodePolicy {other} has the same precedence, and selects {count} of these nodes, too ({such_as}{example})")
    }).collect();
    (!parts.is_empty()).then(|| Problem {
        reason: "NodesShared",
        field: "spec.precedence".to_owned(),
        message: format!(
            "{}; if several policies select a node, the first by name counts: give one a greater precedence",
            parts.join("; ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit;
    use crate::pool::{
        Document, Event, MachineFacts, PolicyFacts, Selection, Selector, SelectorTerm, StartdConfig, Time,
    };

    fn selector(terms: &[SelectorTerm]) -> Selector {
        Selector { terms: terms.to_vec() }
    }

    fn is(key: &str, values: &[&str]) -> SelectorTerm {
        SelectorTerm::In(key.to_owned(), values.iter().map(ToString::to_string).collect())
    }

    fn is_not(key: &str, values: &[&str]) -> SelectorTerm {
        SelectorTerm::NotIn(key.to_owned(), values.iter().map(ToString::to_string).collect())
    }

    fn has(key: &str) -> SelectorTerm {
        SelectorTerm::Exists(key.to_owned())
    }

    fn lacks(key: &str) -> SelectorTerm {
        SelectorTerm::DoesNotExist(key.to_owned())
    }

    fn pool(policies: &[(&str, i32, &[SelectorTerm])]) -> Pool {
        let mut pool = Pool::default();
        for (name, precedence, terms) in policies {
            let facts = PolicyFacts {
                selection: Selection { selector: selector(terms), precedence: *precedence },
                ..kit::policy(name, StartdConfig::default(), name)
            };
            pool.apply(Event::Policy(facts), Time::from_secs(1));
        }
        pool
    }

    #[test]
    fn a_selector_covers_another_if_it_demands_nothing_that_the_other_does_not_demand() {
        for (wide, narrow, covers) in [
            (&[][..], &[][..], true),
            (&[], &[is("a", &["1"])], true),
            (&[is("a", &["1"])], &[], false),
            (&[is("a", &["1", "2"])], &[is("a", &["1"])], true),
            (&[is("a", &["1"])], &[is("a", &["1", "2"])], false),
            (&[is("a", &["1"])], &[is("b", &["1"])], false),
            (&[is("a", &["1"])], &[is("b", &["1"]), is("a", &["1"])], true),
            (&[has("a")], &[is("a", &["1"])], true),
            (&[has("a")], &[has("a")], true),
            (&[has("a")], &[is_not("a", &["1"])], false),
            (&[is_not("a", &["1"])], &[is("a", &["2"])], true),
            (&[is_not("a", &["1"])], &[is("a", &["1", "2"])], false),
            (&[is_not("a", &["1"])], &[is_not("a", &["1", "2"])], true),
            (&[is_not("a", &["1", "2"])], &[is_not("a", &["1"])], false),
            (&[is_not("a", &["1"])], &[lacks("a")], true),
            (&[lacks("a")], &[lacks("a")], true),
            (&[lacks("a")], &[is_not("a", &["1"])], false),
        ] {
            assert_eq!(selector(wide).covers(&selector(narrow)), covers, "{wide:?} covers {narrow:?}");
        }
    }

    #[test]
    fn a_policy_is_shadowed_by_one_that_selects_as_much_and_goes_before() {
        let desktops = [is("kind", &["desktop"])];
        for (policies, shadows) in [
            (&[("a", 0, &[][..])][..], &[None][..]),
            // The same selector: the first by name, or the greater precedence.
            (&[("a", 0, &desktops), ("b", 0, &desktops)], &[None, Some("a")]),
            (&[("a", 0, &desktops), ("b", 1, &desktops)], &[Some("b"), None]),
            // A policy for all nodes goes before one for some.
            (&[("a", 0, &[]), ("b", 0, &desktops)], &[None, Some("a")]),
            (&[("a", 0, &[]), ("b", 1, &desktops)], &[None, None]),
            (&[("a", 0, &desktops), ("b", 0, &[])], &[None, None]),
            (&[("a", 0, &desktops), ("b", 0, &[has("gpu")])], &[None, None]),
        ] {
            let pool = pool(policies);
            let found: Vec<Option<String>> = pool
                .policies()
                .keys()
                .map(|name| shadowed(pool.policies(), name).map(|problem| problem.message))
                .collect();
            for (found, by) in found.iter().zip(shadows) {
                let expected = by.map(|by| format!("NodePolicy {by} selects every node"));
                assert_eq!(found.is_some(), expected.is_some(), "{policies:?}: {found:?}");
                assert!(found.iter().zip(&expected).all(|(found, by)| found.starts_with(by)), "{found:?}");
            }
        }
    }

    /// Which of the policies are to be written anew, after nodes came or went.
    fn decided(pool: &mut Pool, events: impl IntoIterator<Item = Event>) -> Vec<PolicyName> {
        for event in events {
            pool.apply(event, Time::from_secs(2));
        }
        crate::decide::decide(pool, Time::from_secs(2));
        let written = pool.take_statuses().into_iter();
        written
            .filter_map(|document| match document {
                Document::Policy(name) => Some(name),
                _ => None,
            })
            .collect()
    }

    fn node(name: &str, labels: &[(&str, &str)]) -> Event {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let labels = std::sync::Arc::new(labels.collect());
        Event::Machine(MachineFacts { labels, ..kit::machine(name, 4, 16) })
    }

    #[test]
    fn policies_of_one_precedence_say_on_which_nodes_their_names_decide() {
        let (a, b) = (PolicyName::from("a"), PolicyName::from("b"));
        let (gpu, fast) = ([is("gpu", &["yes"])], [is("disk", &["fast"])]);
        let mut pool = pool(&[("a", 0, &gpu), ("b", 0, &fast), ("low", -1, &[])]);
        decided(&mut pool, [Event::Synced]);
        let said = |pool: &Pool, name: &PolicyName| overlap(pool, name).map(|problem| problem.message);

        let one_each = [node("n1", &[("gpu", "yes")]), node("n2", &[("disk", "fast")])];
        assert_eq!(decided(&mut pool, one_each), [a.clone(), b.clone()], "each governs one more");
        assert_eq!((said(&pool, &a), said(&pool, &b)), (None, None));

        let both = || [("gpu", "yes"), ("disk", "fast")];
        let ties = decided(&mut pool, [node("n3", &both()), node("n4", &both())]);
        assert_eq!(
            ties,
            [a.clone(), b.clone()],
            "b governs no more nodes than before, and has something to say"
        );
        assert_eq!(pool.machines()[&"n3".into()].policy, Some(a.clone()));
        let end =
            "if several policies select a node, the first by name counts: give one a greater precedence";
        let says = |other: &str, nodes: &str| {
            Some(format!("NodePolicy {other} has the same precedence, and selects {nodes}; {end}"))
        };
        assert_eq!(said(&pool, &a), says("b", "2 of these nodes, too (such as n3)"));
        assert_eq!(said(&pool, &b), says("a", "2 of these nodes, too (such as n3)"));
        assert_eq!(said(&pool, &"low".into()), None, "a smaller precedence is meant");

        let gone = decided(&mut pool, [Event::MachineGone("n4".into())]);
        assert_eq!(gone, [a.clone(), b.clone()]);
        assert_eq!(said(&pool, &b), says("a", "1 of these nodes, too (n3)"));
        let apart = decided(&mut pool, [node("n3", &[("gpu", "yes")])]);
        assert_eq!((apart, said(&pool, &a), said(&pool, &b)), (vec![a, b], None, None));
    }
}
