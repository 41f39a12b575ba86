//! Finds the losses of events that were counted, by the BPF programs or by the kernel, but are not reported in the
//! programs' buffers.

use tr_bpf::{Tracer, Usage};
use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream};

use super::convert;
use super::records::Sink;
use crate::source::recorder;

/// The losses of events that the BPF programs counted and did not report before they were detached. `span` is
/// the start and the end of the recording.
pub fn unreported(
    tracer: &Tracer,
    sink: &mut Sink,
    usage: &Usage,
    span: (Ktime, Ktime),
) -> Vec<LifeEvent> {
    let [sched, life] = tracer.accounts();
    let mut events = Vec::new();
    for (cpu, account) in sched {
        if let Some((count, since, until)) = account.pending {
            let stream = Stream::Cpu(CpuId(cpu));
            events.push(convert::buffer_full(stream, since, until, count));
        }
    }
    for (cpu, account) in life {
        let count = sink.lost_life(u32::from(cpu), account.lost);
        if let (1.., Some((_, since, until))) = (count, account.pending) {
            events.push(convert::buffer_full(Stream::Lifecycle, since, until, count));
        }
    }
    // The kernel does not say when these losses happened: they may have happened at any time of the recording.
    let timeless = [
        (usage.recursion_misses, LossCause::Recursion),
        (tracer.follow_overflow(), LossCause::FollowSet),
    ];
    events.extend(
        timeless
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, cause)| {
                let lost = Lost {
                    stream: Stream::Lifecycle,
                    count: Some(count),
                    until: span.1,
                    cause,
                };
                recorder(span.0, LifeKind::Lost(lost))
            }),
    );
    events
}
