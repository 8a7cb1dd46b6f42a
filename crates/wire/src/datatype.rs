//! Types of elements: numbers, and pairs of a number and its index.
//!
//! ```text
//!   code    7     4 3     0            element
//!          +-------+-------+          +-----------+---------+
//!          | index | value |          | value     | index   |   little-endian, at any address,
//!          +-------+-------+          +-----------+---------+   without padding
//!            0: none, else one more than the code of an integer
//! ```
//! One byte names a pair type in the same way as a number, so every signature, interface and option
//! that can name a type can name a pair.

use alloc::string::{String, ToString};
use core::fmt;

code! {
    /// A number.
    Scalar {
        /// Unsigned, 4 bytes.
        U32 = 0, "uint32";
        /// Signed, 4 bytes.
        I32 = 1, "int32";
        /// Unsigned, 8 bytes.
        U64 = 2, "uint64";
        /// Signed, 8 bytes.
        I64 = 3, "int64";
        /// IEEE 754 binary32.
        F32 = 4, "float32";
        /// IEEE 754 binary64.
        F64 = 5, "float64";
        /// Unsigned, 2 bytes.
        U16 = 6, "uint16";
        /// Signed, 2 bytes.
        I16 = 7, "int16";
        /// IEEE 754 binary16.
        F16 = 8, "float16";
        /// Upper half of a binary32.
        BF16 = 9, "bfloat16";
        /// Unsigned byte.
        U8 = 10, "uint8";
        /// Signed byte.
        I8 = 11, "int8";
    }
}

impl Scalar {
    /// Bytes of one number.
    pub const fn size(self) -> usize {
        match self {
            Scalar::U8 | Scalar::I8 => 1,
            Scalar::U16 | Scalar::I16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 => 8,
        }
    }

    /// Whether it is a floating-point number.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64)
    }
}

/// Type of one element: a number, or a pair of a number and an integer, its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct DataType {
    value: Scalar,
    index: Option<Scalar>,
}

impl DataType {
    /// Unsigned, 4 bytes.
    pub const U32: DataType = DataType::number(Scalar::U32);
    /// Signed, 4 bytes.
    pub const I32: DataType = DataType::number(Scalar::I32);
    /// Unsigned, 8 bytes.
    pub const U64: DataType = DataType::number(Scalar::U64);
    /// Signed, 8 bytes.
    pub const I64: DataType = DataType::number(Scalar::I64);
    /// IEEE 754 binary32.
    pub const F32: DataType = DataType::number(Scalar::F32);
    /// IEEE 754 binary64.
    pub const F64: DataType = DataType::number(Scalar::F64);
    /// Unsigned, 2 bytes.
    pub const U16: DataType = DataType::number(Scalar::U16);
    /// Signed, 2 bytes.
    pub const I16: DataType = DataType::number(Scalar::I16);
    /// IEEE 754 binary16.
    pub const F16: DataType = DataType::number(Scalar::F16);
    /// Upper half of a binary32.
    pub const BF16: DataType = DataType::number(Scalar::BF16);
    /// Unsigned byte.
    pub const U8: DataType = DataType::number(Scalar::U8);
    /// Signed byte.
    pub const I8: DataType = DataType::number(Scalar::I8);

    /// Every type: the numbers, then the pairs, both in the order of their codes.
    pub const ALL: &'static [DataType] = &all();

    /// The numbers.
    pub const NUMBERS: &'static [DataType] = DataType::ALL.split_at(Scalar::ALL.len()).0;

    /// The pairs.
    pub const PAIRS: &'static [DataType] = DataType::ALL.split_at(Scalar::ALL.len()).1;

    /// A number.
    pub const fn number(value: Scalar) -> DataType {
        DataType { value, index: None }
    }

    /// A value and its index; `None` unless the index is an integer.
    pub const fn pair(value: Scalar, index: Scalar) -> Option<DataType> {
        if index.is_float() { None } else { Some(DataType { value, index: Some(index) }) }
    }

    /// The number, or the pair's value.
    pub const fn value(self) -> Scalar {
        self.value
    }

    /// The pair's index.
    pub const fn index(self) -> Option<Scalar> {
        self.index
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self.index {
            None => self.value.size(),
            Some(index) => self.value.size() + index.size(),
        }
    }

    /// The code on the wire.
    pub const fn code(self) -> u8 {
        match self.index {
            None => self.value.code(),
            Some(index) => self.value.code() | (index.code() + 1) << INDEX_SHIFT,
        }
    }

    /// The type with this code on the wire.
    pub fn from_code(code: u8) -> Option<DataType> {
        let value = Scalar::from_code(code & ((1 << INDEX_SHIFT) - 1))?;
        match code >> INDEX_SHIFT {
            0 => Some(DataType::number(value)),
            above => DataType::pair(value, Scalar::from_code(above - 1)?),
        }
    }

    /// The type with this name: the name of a number, or two such names with a colon between them.
    pub fn from_name(name: &str) -> Option<DataType> {
        match name.split_once(':') {
            None => Scalar::from_name(name).map(DataType::number),
            Some((value, index)) => DataType::pair(Scalar::from_name(value)?, Scalar::from_name(index)?),
        }
    }
}

impl From<DataType> for String {
    fn from(own: DataType) -> String {
        own.to_string()
    }
}

impl TryFrom<String> for DataType {
    type Error = &'static str;

    fn try_from(name: String) -> Result<DataType, Self::Error> {
        DataType::from_name(&name).ok_or("no type of elements has this name")
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            None => f.pad(self.value.name()),
            Some(index) => f.pad(&alloc::format!("{}:{}", self.value, index)),
        }
    }
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            None => write!(f, "{:?}", self.value),
            Some(index) => write!(f, "{:?}:{index:?}", self.value),
        }
    }
}

const fn all() -> [DataType; TYPES] {
    let mut all = [DataType::U32; TYPES];
    let mut count = 0;
    while count < Scalar::ALL.len() {
        all[count] = DataType::number(Scalar::ALL[count]);
        count += 1;
    }
    let mut index = 0;
    while index < Scalar::ALL.len() {
        let mut value = 0;
        while value < Scalar::ALL.len() {
            if let Some(pair) = DataType::pair(Scalar::ALL[value], Scalar::ALL[index]) {
                all[count] = pair;
                count += 1;
            }
            value += 1;
        }
        index += 1;
    }
    assert!(count == TYPES);
    all
}

/// The largest number of bytes of one element.
pub const ELEMENT_MAX: usize = 16;

/// 12 numbers, each alone and with an index of one of 8 types.
const TYPES: usize = 12 * (1 + 8);

/// The lowest bit of the index in the code.
const INDEX_SHIFT: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn codes_and_names_lead_back_to_the_type() {
        let mut last = None;
        for &dtype in DataType::ALL {
            assert_eq!(DataType::from_code(dtype.code()), Some(dtype));
            assert_eq!(DataType::from_name(&dtype.to_string()), Some(dtype));
            assert!(dtype.size() <= ELEMENT_MAX && last < Some(dtype.code()), "{dtype}");
            last = Some(dtype.code());
        }
        let known = (0..=u8::MAX).filter_map(DataType::from_code).count();
        assert_eq!((known, DataType::NUMBERS.len(), DataType::PAIRS.len()), (TYPES, 12, 96));
    }

    #[test]
    fn an_index_is_an_integer() {
        assert_eq!(DataType::pair(Scalar::F64, Scalar::F32), None);
        for unknown in ["float64:float32", "float64:", ":int32", "int32:int32:int32", "float"] {
            assert_eq!(DataType::from_name(unknown), None, "{unknown}");
        }
        let pair = DataType::from_name("float64:int32").unwrap();
        assert_eq!((pair.code(), pair.size(), pair.to_string().as_str()), (0x25, 12, "float64:int32"));
    }
}
