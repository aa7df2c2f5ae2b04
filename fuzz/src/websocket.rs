//! Websockets and the messages of exec sessions: what is received is no more than what was sent, and within its bound.

use drover::http::untrusted::{exec_input, exec_output, websocket_messages, write_exec_input};
use drover_io_real::session::SessionInput;

/// A message of an exec session, from either side.
///
/// # Panics
/// Something does not hold.
pub fn exec_message(bytes: &[u8]) {
    match exec_input(bytes) {
        Ok(inputs) => {
            let total: usize = inputs.iter().map(size).sum();
            assert!(total <= bytes.len(), "{inputs:?}");
            for input in inputs {
                let again = exec_input(write_exec_input(&input).as_bytes());
                assert_eq!(again.as_deref(), Ok(&[input][..]));
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
    match exec_output(bytes) {
        Ok(size) => assert!(size <= bytes.len()),
        Err(why) => assert!(!why.is_empty()),
    }
}

fn size(input: &SessionInput) -> usize {
    match input {
        SessionInput::Stdin(bytes) => bytes.len(),
        SessionInput::CloseStdin | SessionInput::Resize(_) => 0,
    }
}

/// What a client sends once a connection is a websocket. The first byte says how long a message may be.
///
/// # Panics
/// Something does not hold.
pub fn websocket_frame(bytes: &[u8]) {
    let Some((most, sent)) = bytes.split_first() else {
        return;
    };
    let most = usize::from(*most);
    let received = websocket_messages(sent, most);
    let mut all = 0_usize;
    for message in &received.messages {
        assert!(message.len() <= most, "{received:?}");
        all += message.len();
        exec_message(message);
    }
    assert!(all <= sent.len(), "{received:?}");
    // Each that is answered was sent, and one that closes may have been shorter.
    assert!(received.answered <= sent.len() + CONTROL, "{received:?}");
}

/// The most bytes of a frame that pings, answers or closes.
const CONTROL: usize = 125;
