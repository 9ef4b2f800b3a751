//! Prints its arguments, one a line, but for the empty ones.

use operators::Names;

fn main() {
    let mut names = Names::new();
    for name in std::env::args().skip(1) {
        names.add(&name);
    }
    println!("{}", names.lines());
}
