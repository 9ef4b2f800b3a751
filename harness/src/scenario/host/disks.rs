//! File systems of a story's own: they are mounted when somebody first has to do with them, can be
//! filled, and are gone with the round.
//!
//! Invariant: a file system in a file lies in memory, in the cell's scratch space, and its loop
//! device is freed with its last mount, also when everybody is killed.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::stage::Stage;
use super::{Failure, Outcome};
use crate::guard::ChildGuard;
use crate::scenario::needs::find_program;
use crate::scenario::story::{Actor, Disk, DiskKind, Filler};
use crate::scratch::scratch_root;
use crate::wait::Deadline;

/// Longer than anything takes on a loaded machine.
const PATIENCE_SECS: u64 = 20;

/// The size of a file system in a file that is large enough for anything.
const IMAGE_KIB: u64 = 16 << 10;

/// What a disk is filled with, beside its root.
const FILLER: &str = "filler";

/// A disk that is mounted.
#[derive(Debug)]
pub(super) struct Mounted {
    name: String,
    /// Where.
    at: PathBuf,
    /// Where claims lie on it.
    pub(super) root: PathBuf,
    /// The file that it is in, if it is in one.
    image: Option<PathBuf>,
    /// Whether the story has filled it.
    pub(super) full: bool,
}

impl Stage<'_> {
    /// The root of a disk, which is mounted if it is not yet.
    pub(super) fn disk(&mut self, name: &str) -> Outcome<PathBuf> {
        if let Some(mounted) = self.mounted(name) {
            return Ok(mounted.root.clone());
        }
        let Some(Actor::Disk(disk)) = self.story.actors.get(name) else {
            panic!("`{name}` is no disk");
        };
        // Beneath what it lies on, so that it goes first.
        let lower = disk.lower.as_deref().map(|lower| self.disk(lower)).transpose()?;
        let base = scratch_root();
        fs::set_permissions(&base, Permissions::from_mode(0o755))?;
        let at = base.join(name);
        fs::create_dir(&at)?;
        let image = mount_disk(disk, &base, &at, lower.as_deref().and_then(Path::parent))?;
        let root = at.join("root");
        self.disks.push(Mounted { name: name.into(), at, root: root.clone(), image, full: false });
        if !root.exists() {
            fs::create_dir(&root)?;
        }
        // As the temporary directory is, in which claims lie in life.
        fs::set_permissions(&root, Permissions::from_mode(0o1777))?;
        Ok(root)
    }

    /// A disk, if somebody has to do with it already.
    pub(super) fn mounted(&self, name: &str) -> Option<&Mounted> {
        self.disks.iter().find(|mounted| mounted.name == name)
    }

    /// Fills a disk, but for so many inodes.
    pub(super) fn fill(&mut self, name: &str, with: Filler, leaving: u64) -> Outcome<()> {
        let root = self.disk(name)?;
        let Some(mounted) = self.disks.iter_mut().find(|mounted| mounted.name == name) else {
            return Ok(());
        };
        mounted.full = true;
        let filler = mounted.at.join(FILLER);
        match with {
            Filler::Blocks => fill_blocks(&filler)?,
            Filler::Inodes => {
                let name = |number: u64| mounted.at.join(format!("f{number}"));
                let count = until_full(|number| File::create(name(number)).map(drop))?;
                (count.saturating_sub(leaving)..count)
                    .try_for_each(|n| fs::remove_file(name(n)))?;
            }
            Filler::Names => {
                // A second name takes no inode.
                File::options().create(true).append(true).open(&filler)?;
                let planted = &mut self.planted;
                until_full(|number| {
                    let name = root.join(format!("f{number}"));
                    fs::hard_link(&filler, &name)?;
                    planted.push(name);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Unmounts every disk, the last first. Nobody may have anything open there.
    pub(super) fn unmount_disks(&mut self) -> Outcome<()> {
        while let Some(mounted) = self.disks.pop() {
            unmount(&mounted.at, UnmountFlags::empty()).map_err(io::Error::from)?;
            if let Some(image) = &mounted.image {
                loop_device_is_freed(image)?;
            }
        }
        Ok(())
    }
}

/// Mounts it; answers the file that it is in.
fn mount_disk(
    disk: &Disk,
    base: &Path,
    at: &Path,
    lower: Option<&Path>,
) -> Outcome<Option<PathBuf>> {
    let safe = MountFlags::NOSUID | MountFlags::NODEV;
    let simple = |kind: &str, data: String| -> Outcome<Option<PathBuf>> {
        let data = std::ffi::CString::new(data).map_err(io::Error::from)?;
        mount(kind, at, kind, safe, Some(data.as_c_str())).map_err(io::Error::from)?;
        Ok(None)
    };
    match disk.kind {
        DiskKind::Tmpfs => {
            let mut data = "mode=755".to_owned();
            data += &disk.size_kib.map_or(String::new(), |kib| format!(",size={kib}k"));
            data += &disk.inodes.map_or(String::new(), |inodes| format!(",nr_inodes={inodes}"));
            simple("tmpfs", data)
        }
        DiskKind::Ramfs => simple("ramfs", "mode=755".into()),
        DiskKind::Overlay => {
            let make = |name: &str| -> io::Result<PathBuf> {
                let dir = base.join(name);
                fs::create_dir(&dir)?;
                Ok(dir)
            };
            let lower = lower.map_or_else(|| make("lower"), |lower| Ok(lower.to_owned()))?;
            let (upper, work) = (make("upper")?, make("work")?);
            // Where a kernel renames directories of the lower layer, it is told not to.
            simple(
                "overlay",
                format!(
                    "lowerdir={},upperdir={},workdir={},redirect_dir=off",
                    lower.display(),
                    upper.display(),
                    work.display()
                ),
            )
        }
        DiskKind::Ext4 => {
            // No other cell has one of this name, whose loop device could be taken for ours.
            let name = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
            let image = base.join(name.trim_end());
            File::create(&image)?.set_len(disk.size_kib.unwrap_or(IMAGE_KIB) << 10)?;
            let mut make = Command::new(find_program("mkfs.ext4").unwrap_or_default());
            make.args(["-q", "-F", "-b", "1024", "-m", "0", "-O", "^has_journal,^resize_inode"]);
            if let Some(inodes) = disk.inodes {
                make.args(["-N", &inodes.to_string()]);
            }
            make.arg(&image);
            run(make)?;
            let mut mount = Command::new("mount");
            // Such a device is freed by the kernel with its last mount.
            mount.args(["-t", "ext4", "-o", "loop,nosuid,nodev"]).arg(&image).arg(at);
            run(mount)?;
            Ok(Some(image))
        }
    }
}

/// Runs a program that has to go well.
pub(super) fn run(command: Command) -> Outcome<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| Failure::new("system", format!("`{name}` failed: {why}"));
    let mut child = ChildGuard::spawn(command).map_err(|error| failed(error.to_string()))?;
    let status = child.wait(Deadline::secs(PATIENCE_SECS));
    let status = status.map_err(|error| failed(error.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(status.to_string())),
    }
}

/// Writes until no block is free.
fn fill_blocks(filler: &Path) -> Outcome<()> {
    let mut file = File::options().create(true).append(true).open(filler)?;
    for bytes in [64 << 10, 1 << 10] {
        let block = vec![b'x'; bytes];
        loop {
            // What was written is counted only when the disk has it.
            match file.write_all(&block).and_then(|()| file.sync_data()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Makes one after the other until there is no room; answers how many there were.
fn until_full(mut make: impl FnMut(u64) -> io::Result<()>) -> Outcome<u64> {
    let mut count = 0;
    loop {
        match make(count) {
            Ok(()) => count += 1,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits until no loop device has the file.
fn loop_device_is_freed(image: &Path) -> Outcome<()> {
    let name = image.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let deadline = Deadline::secs(PATIENCE_SECS);
    loop {
        let devices = fs::read_dir("/sys/block")?.filter_map(Result::ok);
        // There is no such file for a device without one.
        let files = devices
            .filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
        if !files.into_iter().any(|file| file.contains(&name)) {
            return Ok(());
        }
        // There is no event for it.
        if deadline.passed() {
            let title = "a loop device is left behind";
            return Err(Failure::new("left-behind", title).note(image.display().to_string()));
        }
        std::thread::yield_now();
    }
}
