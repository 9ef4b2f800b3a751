//! The module that is added to the root of each changed crate: it knows which mutant is active, and
//! tells which are reached.
//!
//! An *order* is one line of text, `<mode> [<loops> [<socket>]]`: the number of the active mutant, 0
//! for none, or `record`; how often the loops of one process may go round; and the name of a
//! socket in the abstract name space, to which a process sends what it comes by. The order is in
//! a variable of the environment, and, for programs that are started without it, in a file.
//!
//! Invariants:
//! * Without an order nothing is active, and a crate with the module does what the unchanged one
//!   does.
//! * A message that cannot be sent is sent the next time, so that a process that is short of
//!   descriptors for a while is not overlooked.
//! * Nothing is allocated but while an order is read.
//!
//! A socket is used because it needs no file that can be written: tests are confined, and may confine
//! further.

use std::fmt::Write as _;
use std::path::Path;

/// The name of the module.
pub(crate) const MODULE: &str = "__mutants";

/// The variable with the order.
pub(crate) const VARIABLE: &str = "MORTMAIN_MUTANTS_ACTIVE";

/// The number of no mutant.
pub(crate) const NONE: u32 = 0;

/// What the programs to come are to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) mode: Mode,
    /// Most rounds of loops in one process; 0 for no limit.
    pub(crate) rounds_max: u64,
    /// Where messages go.
    pub(crate) socket: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Unchanged,
    Record,
    Active(u32),
}

impl Order {
    pub(crate) fn active(number: u32) -> Order {
        Order { mode: Mode::Active(number), ..Order::default() }
    }

    pub(crate) fn line(&self) -> String {
        let mut line = match self.mode {
            Mode::Unchanged => NONE.to_string(),
            Mode::Record => "record".to_owned(),
            Mode::Active(number) => number.to_string(),
        };
        let _ = write!(line, " {} {}", self.rounds_max, self.socket);
        line.trim_end().to_owned()
    }
}

/// What a process sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// It came by a mutant.
    Reached(u32),
    /// Its loops have gone round that often.
    Rounds(u64),
    /// It ended itself, because they went round too often.
    Guarded,
}

impl Message {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Message> {
        let (kind, number) = bytes.split_first_chunk::<1>()?;
        let number = u64::from_le_bytes(number.try_into().ok()?);
        match kind {
            b"r" => u32::try_from(number).ok().map(Message::Reached),
            b"l" => Some(Message::Rounds(number)),
            b"g" => Some(Message::Guarded),
            _ => None,
        }
    }
}

/// The module for a crate with `count` mutants, whose order is in `file` where it is not in the
/// environment.
pub(crate) fn module(count: usize, file: &Path) -> String {
    let file = file.to_string_lossy();
    let words = count / 64 + 1;
    format!(
        r#"
#[doc(hidden)]
#[allow(warnings, clippy::all)]
mod {MODULE} {{
    pub(crate) extern crate std;
    use self::std::os::linux::net::SocketAddrExt as _;
    use self::std::os::unix::net::{{SocketAddr, UnixDatagram}};
    use self::std::sync::OnceLock;
    use self::std::sync::atomic::{{AtomicU32, AtomicU64, Ordering::Relaxed}};
    use self::std::prelude::rust_2021::*;

    const UNKNOWN: u32 = u32::MAX;
    const RECORD: u32 = u32::MAX - 1;
    static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
    static REACHED: [AtomicU64; {words}] = [const {{ AtomicU64::new(0) }}; {words}];
    static ROUNDS: AtomicU64 = AtomicU64::new(0);
    static ROUNDS_MAX: AtomicU64 = AtomicU64::new(0);
    static SOCKET: OnceLock<SocketAddr> = OnceLock::new();

    /// The number of the active mutant.
    fn active() -> u32 {{
        match ACTIVE.load(Relaxed) {{
            UNKNOWN => order(),
            number => number,
        }}
    }}

    /// Whether a mutant is active.
    #[deprecated(note = "reached")]
    pub(crate) fn on(number: u32) -> bool {{
        match active() {{
            RECORD => {{
                record(number);
                false
            }}
            active => active == number,
        }}
    }}

    /// The number of the active mutant, where a body has copies for these.
    pub(crate) fn chosen(numbers: &[u32]) -> u32 {{
        match active() {{
            RECORD => {{
                numbers.iter().for_each(|&number| record(number));
                {NONE}
            }}
            active => active,
        }}
    }}

    /// A loop goes round.
    pub(crate) fn round() {{
        let rounds = ROUNDS.fetch_add(1, Relaxed) + 1;
        match active() {{
            RECORD if rounds.is_power_of_two() => {{
                send(b'l', rounds);
            }}
            {NONE} | RECORD => {{}}
            _ => {{
                let most = ROUNDS_MAX.load(Relaxed);
                if most != 0 && rounds > most {{
                    send(b'g', rounds);
                    self::std::process::abort();
                }}
            }}
        }}
    }}

    #[cold]
    fn order() -> u32 {{
        let told = self::std::env::var("{VARIABLE}").ok();
        let told = told.or_else(|| self::std::fs::read_to_string({file:?}).ok());
        let told = told.unwrap_or_default();
        let mut words = told.split_whitespace();
        let number = match words.next() {{
            Some("record") => RECORD,
            Some(number) => number.parse().unwrap_or({NONE}),
            None => {NONE},
        }};
        let most = words.next().and_then(|most| most.parse().ok()).unwrap_or(0);
        ROUNDS_MAX.store(most, Relaxed);
        if let Some(address) = words.next().and_then(|name| SocketAddr::from_abstract_name(name).ok()) {{
            let _ = SOCKET.set(address);
        }}
        ACTIVE.store(number, Relaxed);
        number
    }}

    #[cold]
    fn record(number: u32) {{
        let Some(word) = REACHED.get(number as usize / 64) else {{ return }};
        let bit = 1 << (number % 64);
        if word.fetch_or(bit, Relaxed) & bit == 0 && !send(b'r', u64::from(number)) {{
            word.fetch_and(!bit, Relaxed);
        }}
    }}

    fn send(kind: u8, number: u64) -> bool {{
        let Some(address) = SOCKET.get() else {{ return true }};
        let Ok(socket) = UnixDatagram::unbound() else {{ return false }};
        let mut message = [kind; 9];
        message[1..].copy_from_slice(&number.to_le_bytes());
        loop {{
            match socket.send_to_addr(&message, address) {{
                Err(error) if error.kind() == self::std::io::ErrorKind::Interrupted => {{}}
                sent => return sent.is_ok(),
            }}
        }}
    }}
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_one_line() {
        assert_eq!(Order::default().line(), "0 0");
        assert_eq!(Order::active(7).line(), "7 0");
        let order = Order { mode: Mode::Record, rounds_max: 5, socket: "s".to_owned() };
        assert_eq!(order.line(), "record 5 s");
    }

    #[test]
    fn the_module_is_rust() {
        let text = module(100, Path::new("/a \"b\""));
        assert!(syn::parse_file(&text).is_ok(), "{text}");
        assert!(text.contains("[AtomicU64; 2]"));
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        let message = |kind: u8, number: u64| {
            let mut bytes = vec![kind];
            bytes.extend(number.to_le_bytes());
            Message::parse(&bytes)
        };
        assert_eq!(message(b'r', 3), Some(Message::Reached(3)));
        assert_eq!(message(b'r', u64::MAX), None);
        assert_eq!(message(b'l', u64::MAX), Some(Message::Rounds(u64::MAX)));
        assert_eq!(message(b'g', 1), Some(Message::Guarded));
        assert_eq!(message(b'x', 1), None);
        assert_eq!(Message::parse(b"r1"), None);
    }
}
