//! The answers of commands, which go to stdout.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Prints `text` as it is. A reader that has read enough and left (`| head`) is no error.
///
/// # Errors
/// [`Failure::Environment`] if it cannot be written, as on a full disk.
pub fn print(text: &str) -> Result<(), Failure> {
    offer(text).map(drop)
}

/// Prints like [`print`], and returns whether the reader is still there; for a command with more to
/// say.
pub fn offer(text: &str) -> Result<bool, Failure> {
    write(&mut io::stdout(), text)
}

fn write(out: &mut impl Write, text: &str) -> Result<bool, Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::environment(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_is_no_error_but_a_full_disk_is() {
        assert!(!write(&mut Closed(ErrorKind::BrokenPipe), "text").unwrap() && write(&mut Vec::new(), "text").unwrap());
        assert!(matches!(write(&mut Closed(ErrorKind::StorageFull), "text"), Err(Failure::Environment(_))));
    }
}
