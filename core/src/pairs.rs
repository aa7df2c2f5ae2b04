//! Maps whose keys are no text, as lists of pairs: formats such as JSON have no other maps than
//! those whose keys are text. For `#[serde(with = "pairs")]`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes a map as a list of pairs, in the order of the keys.
///
/// # Errors
/// Those of the format.
pub fn serialize<K, V, S>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error>
where
    K: Serialize,
    V: Serialize,
    S: Serializer,
{
    to.collect_seq(map)
}

/// Reads such a list.
///
/// # Errors
/// Those of the format.
pub fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
where
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Vec::deserialize(from)?.into_iter().collect())
}

/// The same for a map that is shared.
pub mod shared {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes a map as a list of pairs, in the order of the keys.
    ///
    /// # Errors
    /// Those of the format.
    pub fn serialize<K, V, S>(map: &Arc<BTreeMap<K, V>>, to: S) -> Result<S::Ok, S::Error>
    where
        K: Serialize,
        V: Serialize,
        S: Serializer,
    {
        super::serialize(map, to)
    }

    /// Reads such a list.
    ///
    /// # Errors
    /// Those of the format.
    pub fn deserialize<'de, K, V, D>(from: D) -> Result<Arc<BTreeMap<K, V>>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        super::deserialize(from).map(Arc::new)
    }
}
