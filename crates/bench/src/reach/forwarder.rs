//! A link of our own making: bytes of a connection on loopback are held for a while and let through
//! at a rate. It takes no rights and no module of the kernel's, as `netem` would.

use anyhow::Result;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// What a link does to bytes, each way.
#[derive(Clone, Copy)]
pub struct Line {
    /// One way.
    pub delay: Duration,
    /// Bytes a second; without it as many as come.
    pub rate: Option<f64>,
}

/// What a packet holds: the rate is kept in such steps.
const PACKET: usize = 1400;
/// What a queue on the way holds, in packets; whoever sends more waits.
const QUEUE: usize = 256;

/// Forwards connections to a port of this machine; the port to come to.
pub fn begin(to: u16, line: Line) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { continue };
            spawn(move || carry(near, far_too, line));
            spawn(move || carry(far, near_too, line));
        }
    });
    Ok(port)
}

/// One direction: a thread reads, this one lets go when it is time.
fn carry(mut from: TcpStream, mut to: TcpStream, line: Line) {
    let (sender, receiver) = sync_channel(QUEUE);
    spawn(move || {
        let mut bytes = [0; PACKET];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if sender.send((Instant::now(), bytes[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    let _ = let_through(&receiver, &mut to, line);
    let _ = to.shutdown(Shutdown::Write);
}

fn let_through(
    receiver: &Receiver<(Instant, Vec<u8>)>,
    to: &mut impl Write,
    line: Line,
) -> Result<()> {
    // When the line has room for the next packet.
    let mut free = Instant::now();
    while let Ok((came, packet)) = receiver.recv() {
        free = free.max(came);
        if let Some(rate) = line.rate {
            free += Duration::from_secs_f64(packet.len() as f64 / rate);
        }
        sleep((free + line.delay).saturating_duration_since(Instant::now()));
        to.write_all(&packet)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_whole_in_order_and_not_too_soon() {
        let line = Line { delay: Duration::from_millis(20), rate: Some(1e6) };
        let (sender, receiver) = sync_channel(QUEUE);
        let began = Instant::now();
        let sent: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
        for packet in sent.chunks(PACKET) {
            sender.send((began, packet.to_vec())).unwrap();
        }
        drop(sender);
        let mut came = Vec::new();
        let_through(&receiver, &mut came, line).unwrap();
        assert_eq!(came, sent);
        assert!(began.elapsed() >= Duration::from_millis(120), "{:?}", began.elapsed());
    }
}
