//! Threads that want one lock, in every order.

use mortmain_loom::every_order;

#[test]
fn two_threads_pass_in_every_order() {
    let orders = every_order(2);
    println!("2 threads: {orders} orders");
    assert!(orders > 10, "{orders}");
}

#[test]
fn three_threads_pass_in_every_order() {
    let orders = every_order(3);
    println!("3 threads: {orders} orders");
    assert!(orders > 1_000, "{orders}");
}
