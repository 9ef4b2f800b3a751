//! Clients: one at standard input and output, or one a connection at passed sockets.
//!
//! Invariants:
//! * The end of a client's input is the end of its commands, or of their being watched, before it is
//!   the end of anything else. The SDK waits for answers first, and the answers for the commands.
//! * SIGTERM and SIGINT are the end of every client's input.
//!
//! Only Unix sockets are served: whoever connects runs commands, and there it is the mode of the
//! socket's name that says who may.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use mortmain::{Namespace, activation};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, stdio_pipes};
use rmcp::{RoleServer, ServiceExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::failure::{Failure, note};
use crate::input::Input;
use crate::notes::Notes;
use crate::shell::{Commands, told};
use crate::tools::Tools;
use crate::workplace::Workplace;

/// How long the last answers may take to a client that does not read them.
const ANSWERS_PATIENCE: Duration = Duration::from_secs(2);

/// How long nobody is let in where the system has no room for another one.
const ROOM_PATIENCE: Duration = Duration::from_millis(100);

/// What all clients share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) workplace: Arc<Workplace>,
    pub(crate) namespace: Namespace,
    pub(crate) notes: Notes,
    pub(crate) leave_commands: bool,
}

/// Serves the client at standard input and output, to its end.
pub(crate) async fn standard(shared: Shared) -> Result<(), Failure> {
    let stop = stop_signals().map_err(Failure::system)?;
    converse(shared, stdio_pipes(), stop).await.map_err(Failure::system)
}

/// Serves everybody who connects to the sockets, until it is told to end.
pub(crate) async fn sockets(shared: Shared, passed: Vec<StdListener>) -> Result<(), Failure> {
    let stop = stop_signals().map_err(Failure::system)?;
    let mut waiting = JoinSet::new();
    for listener in passed {
        let adopted =
            listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
        let listener = adopted.map_err(Failure::system)?;
        waiting.spawn(let_in(shared.clone(), listener, stop.clone()));
    }
    while waiting.join_next().await.is_some() {}
    Ok(())
}

/// The passed sockets, if every one of them is a Unix socket.
pub(crate) fn passed() -> Result<Vec<StdListener>, Failure> {
    let sockets = activation::sockets().map_err(Failure::given)?;
    let unix = sockets.into_iter().map(|socket| {
        let name = socket.name().to_owned();
        let listener = StdListener::from(socket.into_fd());
        match listener.local_addr() {
            Ok(_) => Ok(listener),
            Err(_) => Err(Failure::given(format_args!(
                "the passed socket `{name}` is no Unix socket, and whoever reaches it could run \
                 commands; pass a ListenStream= with a path"
            ))),
        }
    });
    unix.collect()
}

async fn let_in(shared: Shared, listener: UnixListener, stop: watch::Receiver<bool>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            came = listener.accept() => match came {
                Ok((stream, _)) => {
                    let parts = tokio::io::split(stream);
                    clients.spawn(converse(shared.clone(), parts, stop.clone()));
                }
                Err(error) => {
                    note(format_args!("nobody can be let in: {error}"));
                    tokio::time::sleep(ROOM_PATIENCE).await;
                }
            },
            Some(left) = clients.join_next() => {
                if let Ok(Err(why)) = left {
                    note(why);
                }
            }
            () = told(stop.clone()) => break,
        }
    }
    while clients.join_next().await.is_some() {}
}

/// Serves one client. The error is a sentence.
async fn converse<R, W>(
    shared: Shared,
    (read, write): (R, W),
    stop: watch::Receiver<bool>,
) -> Result<(), String>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let Shared { workplace, namespace, notes, leave_commands } = shared;
    let commands = Arc::new(Commands::new(workplace, leave_commands));
    let tools = Tools { commands: Arc::clone(&commands), namespace, notes };
    let (over, heard) = watch::channel(false);
    let transport =
        Heard { inner: AsyncRwTransport::new_server(Input::of(read), write), stop, over };
    let session = tokio::spawn(async move {
        match tools.serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    told(heard).await;
    // CHECK(p5-end-before-close): the claim would be given up while a command is still in it, which
    // nobody would end any more.
    commands.finish().await;
    match tokio::time::timeout(ANSWERS_PATIENCE, session).await {
        Ok(ended) => ended.unwrap_or_else(|error| Err(error.to_string())),
        Err(_) => Err("the client does not read the last answers".into()),
    }
}

/// A transport that tells when its input has ended, and whose input can be ended.
struct Heard<T> {
    inner: T,
    stop: watch::Receiver<bool>,
    over: watch::Sender<bool>,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Heard<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = tokio::select! {
            message = self.inner.receive() => message,
            () = told(self.stop.clone()) => None,
        };
        if message.is_none() {
            self.over.send_replace(true);
        }
        message
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

/// Becomes true when the server is told to end.
fn stop_signals() -> io::Result<watch::Receiver<bool>> {
    let (tell, stop) = watch::channel(false);
    let [mut term, mut int] = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        tell.send_replace(true);
    });
    Ok(stop)
}
