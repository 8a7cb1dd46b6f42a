//! The HTTP that a scraper speaks: one request without a body, HTTP/1.0 or 1.1.

/// A request whose head is complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// Whether only the head of the answer is wanted.
    pub head_only: bool,
    /// The path, without the part behind a question mark.
    pub path: String,
}

/// Why a request gets another answer than it wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It is not HTTP.
    Malformed,
    /// It is longer than any scraper's.
    TooLong,
    /// Its method is neither GET nor HEAD.
    Method,
    /// Its version is neither HTTP/1.0 nor HTTP/1.1.
    Version,
}

impl Fault {
    /// The status line's code and reason.
    pub(super) fn status(self) -> &'static str {
        match self {
            Fault::Malformed => "400 Bad Request",
            Fault::TooLong => "431 Request Header Fields Too Large",
            Fault::Method => "405 Method Not Allowed",
            Fault::Version => "505 HTTP Version Not Supported",
        }
    }
}

/// Reads what has come so far. `Ok(None)`: the head is not complete yet. The function is total:
/// however the bytes of a request were cut, the answer is the same.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Request>, Fault> {
    let window = &bytes[..bytes.len().min(HEAD_MAX)];
    let Some(end) = window.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if bytes.len() >= HEAD_MAX { Err(Fault::TooLong) } else { Ok(None) };
    };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| Fault::Malformed)?;
    let mut lines = head.split("\r\n");
    let request = request_line(lines.next().unwrap_or_default())?;
    if lines.all(is_header) { Ok(Some(request)) } else { Err(Fault::Malformed) }
}

fn request_line(line: &str) -> Result<Request, Fault> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Fault::Malformed);
    };
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_word(method) || !is_word(target) || !version.starts_with("HTTP/") {
        return Err(Fault::Malformed);
    }
    if !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return Err(Fault::Version);
    }
    let head_only = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(Fault::Method),
    };
    let path = target.split('?').next().unwrap_or_default().to_owned();
    Ok(Request { head_only, path })
}

fn is_header(line: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    line.split_once(':').is_some_and(|(name, _)| is_name(name))
}

/// The most bytes of a request's head. A scraper's has some hundreds.
pub(super) const HEAD_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn get(path: &str) -> Request {
        Request { head_only: false, path: path.into() }
    }

    #[test]
    fn what_scrapers_send_is_understood() {
        let text = "GET /metrics?x=1 HTTP/1.1\r\nHost: an:9100\r\nAccept: */*\r\n\r\n";
        assert_eq!(parse(text.as_bytes()), Ok(Some(get("/metrics"))));
        assert_eq!(parse(b"HEAD / HTTP/1.0\r\n\r\nrest"), Ok(Some(Request { head_only: true, path: "/".into() })));
        assert_eq!(parse(b"GET /metrics HT"), Ok(None));
    }

    #[test]
    fn what_nobody_should_send_is_named() {
        for (text, fault) in [
            ("GET /metrics\r\n\r\n", Fault::Malformed),
            ("GET  /metrics HTTP/1.1\r\n\r\n", Fault::Malformed),
            ("GET /metrics HTTP/1.1\r\nno header\r\n\r\n", Fault::Malformed),
            ("GET /metrics HTTP/1.1\r\n: x\r\n\r\n", Fault::Malformed),
            ("GET /metrics FTP/1.1\r\n\r\n", Fault::Malformed),
            ("POST /metrics HTTP/1.1\r\n\r\n", Fault::Method),
            ("GET /metrics HTTP/2.0\r\n\r\n", Fault::Version),
            ("\r\n\r\n", Fault::Malformed),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(fault), "{text:?}");
        }
        assert_eq!(parse(b"GET /\xff HTTP/1.1\r\n\r\n"), Err(Fault::Malformed));
        assert_eq!(parse(&[b'a'; HEAD_MAX]), Err(Fault::TooLong));
    }

    proptest! {
        #[test]
        fn no_bytes_bring_the_parser_down(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        // A prefix of a request either waits for more or gives the same answer as the whole.
        #[test]
        fn a_request_may_come_in_any_pieces(
            method in "(GET|HEAD|POST|[A-Z]{1,5})",
            path in "/[a-z/?=]{0,20}",
            headers in proptest::collection::vec("[A-Za-z-]{1,10}: ?[a-z ]{0,10}", 0..5),
        ) {
            let lines: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
            let text = format!("{method} {path} HTTP/1.1\r\n{lines}\r\n");
            let whole = parse(text.as_bytes());
            prop_assert!(whole != Ok(None));
            for end in 0..text.len() {
                prop_assert_eq!(parse(&text.as_bytes()[..end]), Ok(None));
            }
        }
    }
}
