//! Numbers with a fraction that others send.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number with a fraction, as it came from outside. It can be part of a state: it is compared
/// and hashed by its bits, zero has one sign, and everything that is not a number is one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Float(u64);

impl Float {
    /// This number.
    pub fn new(value: f64) -> Float {
        if value.is_finite() {
            // Adding zero takes the sign from zero.
            Float((value + 0.0).to_bits())
        } else {
            Float(f64::NAN.to_bits())
        }
    }

    /// The number; not finite if what came was none.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// Whether it is a number at all.
    pub fn is_finite(self) -> bool {
        self.get().is_finite()
    }
}

impl From<f64> for Float {
    fn from(value: f64) -> Float {
        Float::new(value)
    }
}

impl Serialize for Float {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.is_finite().then(|| self.get());
        number.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Float, D::Error> {
        let number = Option::<f64>::deserialize(deserializer)?;
        Ok(Float::new(number.unwrap_or(f64::NAN)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_normalizes_zero_and_nan() {
        assert_eq!(Float::new(0.0), Float::new(-0.0));
        assert_eq!(Float::new(f64::INFINITY), Float::new(f64::NAN));
        assert!(!Float::new(f64::NEG_INFINITY).is_finite());
    }
}
