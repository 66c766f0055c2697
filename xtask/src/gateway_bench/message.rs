//! HTTP/1.1, as little of it as a load generator and an upstream need, over blocking sockets. It shares no code with the
//! gateway that it measures.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// How long a read may take before a measurement is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection, and what was read from it beyond the last message.
pub(super) struct HttpConnection {
    stream: TcpStream,
    held: Vec<u8>,
    room: Vec<u8>,
}

/// The first lines of a message.
pub(super) struct MessageHead {
    /// The request's or the status line.
    pub(super) first_line: String,
    fields: Vec<(String, String)>,
}

impl MessageHead {
    fn parse(text: &str) -> MessageHead {
        let mut lines = text.split("\r\n");
        let first_line = lines.next().unwrap_or_default().to_owned();
        let pairs = lines.filter_map(|line| line.split_once(':'));
        let fields = pairs.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        MessageHead {
            first_line,
            fields: fields.collect(),
        }
    }

    /// Returns a header's value; names are in small letters.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    fn is_answer(&self) -> bool {
        self.first_line.starts_with("HTTP/")
    }
}

impl HttpConnection {
    /// Connects to a port of this machine.
    pub(super) fn open(port: u16) -> io::Result<HttpConnection> {
        HttpConnection::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port))?)
    }

    /// Takes a connection that was opened.
    pub(super) fn new(stream: TcpStream) -> io::Result<HttpConnection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(HttpConnection {
            stream,
            held: Vec::new(),
            room: vec![0; 1 << 18],
        })
    }

    /// Sends bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads the head of a message; `None` where the other side has closed the connection.
    pub(super) fn read_head(&mut self) -> io::Result<Option<MessageHead>> {
        loop {
            let end = self.held.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head: Vec<u8> = self.held.drain(..end + 4).collect();
                let text = String::from_utf8_lossy(&head);
                return Ok(Some(MessageHead::parse(text.trim_end())));
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads the body that follows a head; `take` gets each piece when it arrives.
    pub(super) fn read_body(
        &mut self,
        head: &MessageHead,
        take: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        if head.field("transfer-encoding") == Some("chunked") {
            return self.read_chunks(take);
        }
        let length = head.field("content-length");
        match length.and_then(|length| length.parse().ok()) {
            Some(length) => self.read_exactly(length, take),
            None if head.is_answer() => self.read_exactly(usize::MAX, take).or(Ok(())),
            None => Ok(()),
        }
    }

    fn read_chunks(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        loop {
            let line = self.read_line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            self.read_exactly(size, take)?;
            self.read_line()?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn read_line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
            self.fill_some()?;
        }
    }

    fn read_exactly(&mut self, mut left: usize, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        while left > 0 {
            if self.held.is_empty() {
                self.fill_some()?;
            }
            let length = self.held.len().min(left);
            let piece: Vec<u8> = self.held.drain(..length).collect();
            take(&piece);
            left -= length;
        }
        Ok(())
    }

    fn fill_some(&mut self) -> io::Result<()> {
        match self.fill()? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let read = self.stream.read(&mut self.room)?;
        self.held
            .extend_from_slice(self.room.get(..read).unwrap_or_default());
        Ok(read)
    }
}
