//! Connections that fall silent.

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Relays connections to `server`. Returns the port, and what silences the connections that are open, without closing
/// them, as a failover does.
pub async fn relay(server: String) -> (u16, watch::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (silence, silenced) = watch::channel(());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (server, mut silenced) = (server.clone(), silenced.clone());
            silenced.mark_unchanged();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(server).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    _ = silenced.changed() => std::future::pending().await,
                }
            });
        }
    });
    (port, silence)
}
