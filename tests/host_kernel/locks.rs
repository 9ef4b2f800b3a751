//! `flock` on the real kernel.

use mortmain::sys::{Errno, Fd, Host, Pid, Probed};

use crate::support::{Place, in_cell, name, open_root};

/// Twice the same directory, through two descriptions.
fn two_descriptions(place: &Place) -> [Fd<Host>; 2] {
    [(); 2].map(|()| open_root(&place.path).expect("it is there"))
}

#[test]
fn a_lock_is_held_by_one_description_at_a_time() {
    in_cell(|| {
        let place = Place::new();
        let [first, second] = two_descriptions(&place);
        assert_eq!(first.lock(), Ok(()));
        assert_eq!(first.lock(), Ok(()), "its own again");
        assert_eq!(second.lock(), Err(Errno::EAGAIN));
        assert_eq!(first.unlock(), Ok(()));
        assert_eq!(second.lock(), Ok(()));
        assert_eq!(first.lock(), Err(Errno::EAGAIN));
    });
}

#[test]
fn a_lock_falls_with_its_description_and_follows_its_directory() {
    in_cell(|| {
        let place = Place::new().with_dir("dir");
        let held = place.dir.open_dir(&name("dir")).expect("it is there");
        assert_eq!(held.lock(), Ok(()));
        assert_eq!(place.dir.rename(&name("dir"), &name("moved")), Ok(()));
        let moved = place.dir.open_dir(&name("moved")).expect("it is there");
        assert_eq!(moved.lock(), Err(Errno::EAGAIN));
        drop(held);
        assert_eq!(moved.lock(), Ok(()));
    });
}

#[test]
fn a_file_is_locked_whether_it_was_made_or_opened() {
    in_cell(|| {
        let place = Place::new();
        let made = place.dir.create_file(&name("file")).expect("the name is free");
        let opened = place.dir.open_file(&name("file")).expect("it is a file");
        assert_eq!(made.lock(), Ok(()));
        assert_eq!(opened.lock(), Err(Errno::EAGAIN));
        assert_eq!(made.unlock(), Ok(()));
        assert_eq!(opened.lock(), Ok(()));
    });
}

#[test]
fn to_ask_for_a_lock_that_is_held_does_not_give_it_back() {
    in_cell(|| {
        let place = Place::new();
        let [held, asking] = two_descriptions(&place);
        assert_eq!(held.lock(), Ok(()));
        assert_eq!(Probed::ask(asking).err(), Some(Errno::EAGAIN));
        let [again, _] = two_descriptions(&place);
        assert_eq!(again.lock(), Err(Errno::EAGAIN));
    });
}

#[test]
fn the_holder_of_a_lock_is_told_by_its_number() {
    in_cell(|| {
        let place = Place::new();
        let [held, asking] = two_descriptions(&place);
        assert_eq!(asking.lock_holder(), Ok(None));
        assert_eq!(held.lock(), Ok(()));
        let me = i32::try_from(std::process::id()).expect("it is a pid");
        assert_eq!(asking.lock_holder(), Ok(Some(Pid(me))));
        assert_eq!(held.unlock(), Ok(()));
        assert_eq!(asking.lock_holder(), Ok(None));
    });
}
