//! Threads that want one lock, in every order. Fewer orders than before would mean that some are not
//! gone through any more; ARCHITECTURE.md names these figures.

use mortmain_loom::every_order;

#[test]
fn two_threads_pass_in_every_order() {
    let orders = every_order(2);
    assert_eq!(orders, 28);
}

#[test]
fn three_threads_pass_in_every_order() {
    let orders = every_order(3);
    assert_eq!(orders, 51_698);
}
