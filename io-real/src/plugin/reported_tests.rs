//! What becomes of messages, good and bad.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use prost::Message;

use super::*;

fn sample() -> device::StatsResponse {
    let value = structs::StatValue {
        int_numerator_val: Some(0),
        float_denominator_val: Some(f64::INFINITY),
        bool_val: Some(false),
        unit: "MiB".to_owned(),
        ..Default::default()
    };
    let stats = structs::StatObject {
        nested: [("deeper".to_owned(), structs::StatObject::default())].into(),
        attributes: [("used".to_owned(), value)].into(),
    };
    let one = device::DeviceStats {
        summary: None,
        stats: Some(stats),
        timestamp: Some(prost_types::Timestamp {
            seconds: i64::MAX,
            nanos: -1,
        }),
    };
    device::StatsResponse {
        groups: vec![device::DeviceGroupStats {
            vendor: "v".to_owned(),
            instance_stats: [("a".to_owned(), one)].into(),
            ..Default::default()
        }],
    }
}

#[test]
fn zero_and_unset_are_different() {
    let message = device::StatsResponse::decode(sample().encode_to_vec().as_slice()).unwrap();
    let reported = stats(message.groups.into_iter().next().unwrap());
    let one = &reported.instances["a"];
    assert_eq!(one.summary, None);
    let stats = one.stats.as_ref().unwrap();
    assert!(stats.nested.contains_key("deeper"));
    let used = &stats.attributes["used"];
    assert_eq!((used.int_numerator, used.int_denominator), (Some(0), None));
    assert_eq!((used.bool, used.string.as_deref()), (Some(false), None));
    assert!(!used.float_denominator.unwrap().is_finite());
    assert_eq!(reported.kind, "");
}

#[test]
fn attribute_has_sent_value_or_none() {
    use structs::attribute::Value as V;
    let of = |value| {
        attribute(structs::Attribute {
            value,
            unit: "MHz".to_owned(),
        })
    };
    assert_eq!(of(Some(V::IntVal(0))).int, Some(0));
    assert_eq!(of(Some(V::BoolVal(false))).bool, Some(false));
    assert_eq!(
        of(Some(V::StringVal(String::new()))).string.as_deref(),
        Some("")
    );
    assert_eq!(of(Some(V::FloatVal(1.5))).float, Some(Float::new(1.5)));
    let none = ReportedAttribute {
        unit: "MHz".to_owned(),
        ..Default::default()
    };
    assert_eq!(of(None), none);
}

#[test]
fn arbitrary_messages_are_safe() {
    let good = sample().encode_to_vec();
    let mut random = crate::plugin::fuzz::Random::new(3);
    let mut read = 0;
    for _ in 0..20_000 {
        if let Ok(message) = device::StatsResponse::decode(random.mutated(&good).as_slice()) {
            read += 1;
            message.groups.into_iter().map(stats).for_each(drop);
        }
    }
    assert!(read > 100, "only {read} could be read");
}
