//! Our streams of a context: one for copies out of the device, one for copies back, so that neither
//! waits for the other or for what the program has queued.

use trib_device::{Context, Error, Event, Stream};

pub(super) struct Streams {
    context: Context,
    pub(super) out: Stream,
    pub(super) back: Stream,
}

impl Streams {
    pub(super) fn new(context: Context) -> Result<Streams, Error> {
        let current = context.enter()?;
        Ok(Streams { context, out: Stream::new(&current)?, back: Stream::new(&current)? })
    }

    pub(super) fn context(&self) -> Context {
        self.context
    }

    /// Lets no copy out of the device that is queued from now on be done before the event has come.
    pub(super) fn begin(&self, entry: &Event) -> Result<(), Error> {
        let current = self.context.enter()?;
        self.out.wait(&current, entry)
    }

    /// Waits until no copy is under way. Where the driver fails, the context is lost, and its
    /// copies with it.
    pub(super) fn drain(&self) {
        for stream in [&self.out, &self.back] {
            let recorded = self.context.enter().and_then(|current| stream.record(&current));
            let _ = recorded.and_then(|event| event.wait());
        }
    }
}
