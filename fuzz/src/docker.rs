//! Answers of a Docker engine that flow: events, how a download goes, what containers and programs write.

use drover_io_real::driver::docker::{read_frames, read_lines, read_output};

/// The most bytes that are tried: what is longer is cut where it comes to pieces.
const MOST: usize = 32 << 10;

/// What an engine sends is the same however it arrives, and nothing is made of it that is not in it. The first byte
/// says how large the pieces are.
///
/// # Panics
/// Something does not hold.
pub fn docker_answer(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let rest = rest.get(..MOST).unwrap_or(rest);
    let size = usize::from(*first) + 1;
    let whole = || std::iter::once(rest);
    let lines = read_lines(whole());
    assert_eq!(lines, read_lines(rest.chunks(size)));
    let found: usize = lines.whole.iter().map(|line| line.len() + 1).sum();
    assert!(found <= rest.len() && lines.too_long == 0, "{lines:?}");
    assert!(lines.progress.len() < 100, "{lines:?}");
    for has_terminal in [false, true] {
        let (output, is_output) = read_output(whole(), has_terminal);
        let pieces = read_output(rest.chunks(size), has_terminal);
        assert_eq!((&output, is_output), (&pieces.0, pieces.1));
        // Times are texts, whatever the bytes.
        let found: usize = output.iter().map(|(_, _, text)| text.len()).sum();
        assert!(found <= rest.len(), "{output:?}");
        assert!(
            output.iter().all(|(_, time, _)| time.len() <= 3 * 64),
            "{output:?}"
        );
    }
    let (streams, is_frames) = read_frames(whole());
    assert_eq!((streams.clone(), is_frames), read_frames(rest.chunks(size)));
    assert!(streams.iter().map(Vec::len).sum::<usize>() <= rest.len());
}
