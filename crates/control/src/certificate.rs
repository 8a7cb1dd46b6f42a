//! What a certificate says: whose it is, its serial number, when it ends.
//!
//! ```text
//!   Certificate ::= SEQUENCE { tbs, algorithm, signature }
//!   tbs         ::= SEQUENCE { [0] version, serial, algorithm, issuer,
//!                              validity SEQUENCE { begin, end }, ... }
//!   end         ::= UTCTime "YYMMDDHHMMSSZ", or GeneralizedTime "YYYYMMDDHHMMSSZ"
//! ```
//! The library that verifies certificates does not tell their end, so this walks there by itself.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use trib_messages::hello::Role;
use webpki::EndEntityCert;

use crate::Error;
use crate::clock::{DAY, date, seconds_of};
use crate::files::certificate_file;
use crate::holder::Holder;

/// What stands in a certificate. It is to be believed once the certificate is verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// Whose it is.
    pub holder: Holder,
    /// Its number, which no other one of its authority has.
    pub serial: Serial,
    /// When it ends, seconds since 1970-01-01 UTC.
    pub ends: u64,
}

impl Certificate {
    /// What stands in the certificate of `role` in a credentials folder.
    pub fn in_folder(folder: &Path, role: Role) -> Result<Certificate, Error> {
        let path = certificate_file(folder, role);
        let bad = |cause: String| Error::BadCredentials { path: path.clone(), cause };
        let text = fs::read(&path).map_err(|cause| Error::NoCredentials { role, path: path.clone(), cause })?;
        let certificate = CertificateDer::from_pem_slice(&text).map_err(|cause| bad(cause.to_string()))?;
        Certificate::read(&certificate).map_err(|cause| bad(cause.to_string()))
    }

    /// What stands in it.
    pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<Certificate, Error> {
        let parsed = EndEntityCert::try_from(certificate).map_err(|cause| Error::BadCertificate(cause.to_string()))?;
        let holder = Holder::named_by(&parsed)?;
        let ends = end(certificate).ok_or_else(|| Error::BadCertificate("its end cannot be read".into()))?;
        Ok(Certificate { holder, serial: Serial(parsed.serial().to_vec()), ends })
    }

    /// The seconds until its end, negative after it.
    pub fn seconds_left(&self, now: u64) -> i64 {
        (i128::from(self.ends) - i128::from(now)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Whether it has ended or ends so soon that somebody should know.
    pub fn ends_soon(&self, now: u64) -> bool {
        self.seconds_left(now) < WARNING as i64
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, serial {}, until {}", self.holder, self.serial, date(self.ends))
    }
}

/// How long before the end of a certificate people are warned, seconds.
pub const WARNING: u64 = 30 * DAY;

/// The number of a certificate, written as OpenSSL writes it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Serial(Vec<u8>);

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl FromStr for Serial {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits: String = text.chars().filter(|letter| *letter != ':').collect();
        let wrong = || format!("`{text}` is no serial number: write 2 to 40 hexadecimal digits");
        if !(2..=40).contains(&digits.len()) || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
            return Err(wrong());
        }
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
        (0..digits.len()).step_by(2).map(byte).collect::<Result<Vec<u8>, String>>().map(Serial)
    }
}

/// The public key in a certificate, as `SubjectPublicKeyInfo`.
pub(crate) fn public_key(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, Error> {
    let parsed = EndEntityCert::try_from(certificate).map_err(|cause| Error::BadCertificate(cause.to_string()))?;
    Ok(parsed.subject_public_key_info().to_vec())
}

/// The end of a certificate, seconds since 1970-01-01 UTC.
fn end(certificate: &[u8]) -> Option<u64> {
    let (certificate, _) = inside(certificate, SEQUENCE)?;
    let (tbs, _) = inside(certificate, SEQUENCE)?;
    let (_, rest) = inside(tbs, VERSION)?;
    let (_, rest) = inside(rest, INTEGER)?;
    let (_, rest) = inside(rest, SEQUENCE)?;
    let (_, rest) = inside(rest, SEQUENCE)?;
    let (validity, _) = inside(rest, SEQUENCE)?;
    let (_, _, ends) = element(validity)?;
    let (tag, text, _) = element(ends)?;
    let text = std::str::from_utf8(text).ok()?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = number(text, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => number(text, 4)?,
        _ => return None,
    };
    let (month, rest) = number(rest, 2)?;
    let (day, rest) = number(rest, 2)?;
    let (hour, rest) = number(rest, 2)?;
    let (minute, rest) = number(rest, 2)?;
    let (second, rest) = number(rest, 2)?;
    let is_date = rest == "Z" && (1..=12).contains(&month) && (1..=31).contains(&day);
    is_date.then(|| seconds_of(year, month, day))?.checked_add(hour * 3600 + minute * 60 + second)
}

/// The number in so many digits, and what follows.
fn number(text: &str, digits: usize) -> Option<(u64, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?.map(|number| (number, rest))
}

/// What is in the first element, which has this tag, and what follows it.
fn inside(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    element(der).filter(|(tag, ..)| *tag == wanted).map(|(_, content, rest)| (content, rest))
}

/// The first element: its tag, what is in it, what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x0f))?;
            (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let head =
            if length < 0x80 { vec![tag, length as u8] } else { vec![tag, 0x82, (length >> 8) as u8, length as u8] };
        [head, content.to_vec()].concat()
    }

    /// A certificate of which only what leads to its end is there.
    fn ending(tag: u8, end: &[u8]) -> Vec<u8> {
        let validity = [tlv(UTC_TIME, b"750101000000Z"), tlv(tag, end)].concat();
        let head = [tlv(VERSION, &tlv(INTEGER, &[2])), tlv(INTEGER, &[7; 20])].concat();
        let tail = [tlv(SEQUENCE, &[0; 10]), tlv(SEQUENCE, &[1; 200]), tlv(SEQUENCE, &validity)].concat();
        tlv(SEQUENCE, &tlv(SEQUENCE, &[head, tail].concat()))
    }

    #[test]
    fn the_end_is_read_in_both_of_its_forms() {
        assert_eq!(end(&ending(UTC_TIME, b"271126154801Z")), Some(1_827_244_081));
        assert_eq!(end(&ending(UTC_TIME, b"700101000000Z")), Some(0));
        assert_eq!(end(&ending(GENERALIZED_TIME, b"40960101000000Z")), Some(67_090_118_400));
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let whole = ending(UTC_TIME, b"271126154801Z");
        for length in 0..whole.len() {
            assert_eq!(end(&whole[..length]), None, "{length}");
        }
        for wrong in [&b"271326154801Z"[..], b"2711261548Z", b"27112615480aZ", b"271126154801", b"271100154801Z", b""] {
            assert_eq!(end(&ending(UTC_TIME, wrong)), None);
        }
        assert_eq!(end(&ending(INTEGER, b"271126154801Z")), None);
    }

    #[test]
    fn a_serial_number_survives_printing_and_parsing() {
        let serial = Serial(vec![0x0a, 0xff, 0x00]);
        assert_eq!(serial.to_string(), "0AFF00");
        assert_eq!((serial.to_string().parse(), "0a:ff:00".parse()), (Ok(serial.clone()), Ok(serial)));
        for wrong in ["", "0", "0AF", "xy", "äa", &"00".repeat(21)] {
            assert!(wrong.parse::<Serial>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_left_may_be_less_than_nothing() {
        let certificate = Certificate { holder: Holder::Manager, serial: Serial(vec![1]), ends: 100 };
        assert_eq!((certificate.seconds_left(40), certificate.seconds_left(101)), (60, -1));
    }
}
