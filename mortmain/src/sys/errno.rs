//! Error numbers as they cross the seam.
//!
//! A number of Linux, not of the machine the code happens to run on: the
//! simulated kernel answers with the same ones. Every rule that looks at an
//! error names the numbers it understands; the rest are "cannot tell" (h8).

use core::fmt;

/// The number of an error that a system call answered with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Errno = Errno($number);)*

            /// The symbol, such as `ENOENT`, where it is one that the rules know.
            #[must_use]
            pub fn symbol(self) -> Option<&'static str> {
                match self { $(Errno::$name => Some(stringify!($name)),)* _ => None }
            }

            /// What the number says, in words.
            #[must_use]
            pub fn text(self) -> Option<&'static str> {
                match self { $(Errno::$name => Some($text),)* _ => None }
            }

            /// The number that a symbol stands for, for fault lists and files.
            #[must_use]
            pub fn from_symbol(symbol: &str) -> Option<Errno> {
                match symbol { $(stringify!($name) => Some(Errno::$name),)* _ => None }
            }
        }
    };
}

errnos! {
    EPERM = 1, "operation not permitted";
    ENOENT = 2, "no such file or directory";
    ESRCH = 3, "no such process";
    EINTR = 4, "interrupted system call";
    EIO = 5, "input/output error";
    E2BIG = 7, "argument list too long";
    EBADF = 9, "bad file descriptor";
    ECHILD = 10, "no child processes";
    EAGAIN = 11, "resource temporarily unavailable";
    ENOMEM = 12, "cannot allocate memory";
    EACCES = 13, "permission denied";
    EBUSY = 16, "device or resource busy";
    EEXIST = 17, "file exists";
    EXDEV = 18, "crosses into another mount";
    ENODEV = 19, "no such device";
    ENOTDIR = 20, "not a directory";
    EISDIR = 21, "is a directory";
    EINVAL = 22, "invalid argument";
    ENFILE = 23, "too many open files in the system";
    EMFILE = 24, "too many open files in this process";
    ENOSPC = 28, "no space left on device";
    EROFS = 30, "read-only file system";
    EMLINK = 31, "too many links";
    ENAMETOOLONG = 36, "file name too long";
    ENOLCK = 37, "no locks available";
    ENOSYS = 38, "function not implemented";
    ENOTEMPTY = 39, "directory not empty";
    ELOOP = 40, "is a symbolic link";
    EOVERFLOW = 75, "value too large";
    EOPNOTSUPP = 95, "operation not supported";
    ETIMEDOUT = 110, "timed out";
    ESTALE = 116, "stale file handle";
    EUCLEAN = 117, "structure needs cleaning";
    EDQUOT = 122, "disk quota exceeded";
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.text(), self.symbol()) {
            (Some(text), Some(symbol)) => write!(f, "{text} ({symbol})"),
            _ => write!(f, "error {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => f.write_str(symbol),
            None => write!(f, "Errno({})", self.0),
        }
    }
}
