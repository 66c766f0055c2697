//! The bytes of a pack: a head of fixed size, then one zstd frame.
//!
//! The head names the base, and carries a checksum of everything else, so a flipped bit is found in
//! the pack that has it, before its frame is decoded. The frame is compressed against the
//! [`PackHistory`] below it, not the base alone: a compaction drops most of its input, and what was
//! dropped three compactions ago comes up again. Where there is a key, the frame is sealed; the head
//! stays in the clear, so that damage is told from a key that does not fit. This module does no I/O.

use std::borrow::Cow;

use compact_runtime::port::archive::PackId;
use zstd::zstd_safe::{CCtx, CParameter, CompressionLevel, DCtx, ErrorCode};
use zstd::zstd_safe::{compress_bound, get_error_name};

use crate::seal::Seal;

/// The size of a head.
pub(super) const HEAD_BYTES: usize = MAGIC.len() + 1 + 1 + 8 + 32 + 32;

/// The most that one pack may hold; the declared size of a pack is believed up to here.
pub(super) const MAX_PLAIN: u64 = 1 << 30;

/// What a chain of packs may hold however small it is. Beyond this and what it repeats of its history, a pack
/// must have a byte for every [`MAX_RATIO`] bytes: one that somebody made to fill a reader's memory is
/// refused, and [`encode`] pads what is so repetitive by itself. All packs of a chain share it, or each
/// would repeat the one below and grow by as much again.
const FREE_BYTES: u64 = 64 << 20;

/// What [`encode`] leaves unpaid. A base that is written again may come out smaller than it was, so that
/// more of it is unpaid; what builds on it must be readable all the same.
const FREE_TO_WRITE: u64 = FREE_BYTES / 2;

/// How many bytes each byte of a frame may stand for.
const MAX_RATIO: u64 = 1024;

/// How zstd marks a frame to be skipped; its length follows in four bytes.
const SKIPPABLE: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();

/// How far a frame may look back; about two million tokens, and a tenth of a second to index.
const HISTORY_BYTES: usize = 8 << 20;

/// Beyond this reach the level's own tables are too small to find old matches.
const LONG_REACH: usize = 4 << 20;

const MAGIC: [u8; 4] = *b"CPAK";

/// Whether a frame is sealed: the version of its pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackForm {
    Clear = 1,
    Sealed = 2,
}

/// Where a better ratio begins to cost more time than a compaction should take.
const LEVEL: CompressionLevel = 6;

/// For what is replaced by the next compaction, which waits while it is written.
const LEVEL_OF_DERIVED: CompressionLevel = 1;

/// The first bytes of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackHead {
    /// Whether the frame is sealed.
    pub(super) form: PackForm,
    /// How many packs stand below this one; none when there is no base.
    pub(super) depth: u8,
    /// The size of what the frame decodes to.
    pub(super) plain_bytes: u64,
    /// The pack that the frame builds on.
    pub(super) base: Option<PackId>,
    checksum: [u8; 32],
}

/// What a frame is compressed against: the contents of the packs below it, oldest first, as far
/// back as [`HISTORY_BYTES`], but always the whole of its base.
#[derive(Debug, Default)]
pub(super) struct PackHistory {
    /// The pack on top: the base of the next one.
    pub(super) top: Option<PackId>,
    /// How many packs there are.
    pub(super) packs: u8,
    /// How many of their bytes no byte of theirs pays for; see [`FREE_BYTES`].
    unpaid: u64,
    bytes: Vec<u8>,
}

impl PackHistory {
    /// Puts a pack on top.
    pub(super) fn push(&mut self, id: PackId, pack: DecodedFrame) {
        self.top = Some(id);
        self.packs = self.packs.saturating_add(1);
        self.unpaid = self.unpaid.saturating_add(pack.unpaid);
        let kept = HISTORY_BYTES.saturating_sub(pack.plain.len());
        let dropped = self.bytes.len().saturating_sub(kept);
        self.bytes.drain(..dropped);
        match self.bytes.is_empty() {
            // A large pack is not held twice.
            true => self.bytes = pack.plain,
            false => self.bytes.extend_from_slice(&pack.plain),
        }
    }

    /// Returns how many of a pack's bytes a frame of that size does not pay for.
    fn unpaid_bytes(&self, plain_bytes: u64, frame_bytes: u64) -> u64 {
        let paid = frame_bytes.saturating_mul(MAX_RATIO);
        plain_bytes.saturating_sub(paid.saturating_add(self.bytes.len() as u64))
    }
}

/// What a frame decoded to.
#[derive(Debug)]
pub(super) struct DecodedFrame {
    /// The bytes of the pack.
    pub(super) plain: Vec<u8>,
    /// How many of them the frame does not pay for.
    pub(super) unpaid: u64,
}

/// A flaw in the bytes of a pack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PackFlaw {
    #[error("it is cut short")]
    Short,
    #[error("it does not begin like a pack")]
    Magic,
    #[error("its format is {0}")]
    Version(u8),
    #[error("its checksum does not match")]
    Checksum,
    #[error("its head contradicts itself")]
    Head,
    #[error("its chain of bases is broken")]
    Chain,
    #[error("its frame cannot be decoded: {0}")]
    Frame(String),
    #[error("its content does not match its name")]
    Content,
    #[error("it is encrypted with another key")]
    Locked,
    #[error(
        "{stored} bytes cannot stand for {plain}: with the packs below it, at most 64 MiB and 1,024 for \
         each are believed"
    )]
    Bomb { stored: u64, plain: u64 },
}

impl PackHead {
    fn new(plain: &[u8], history: &PackHistory, form: PackForm) -> PackHead {
        PackHead {
            form,
            depth: history.packs,
            plain_bytes: plain.len() as u64,
            base: history.top,
            checksum: [0; 32],
        }
    }

    /// Returns everything but the checksum, as it is stored.
    fn encode_fields(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[self.form as u8, self.depth]);
        out.extend_from_slice(&self.plain_bytes.to_le_bytes());
        out.extend_from_slice(&self.base.map_or([0; 32], |base| base.0));
        out
    }

    /// Reads the head and returns what follows it.
    pub(super) fn split(pack: &[u8]) -> Result<(PackHead, &[u8]), PackFlaw> {
        let (magic, rest) = pack.split_first_chunk::<4>().ok_or(PackFlaw::Short)?;
        if *magic != MAGIC {
            return Err(PackFlaw::Magic);
        }
        let ([version, depth], rest) = rest.split_first_chunk::<2>().ok_or(PackFlaw::Short)?;
        let form = match version {
            1 => PackForm::Clear,
            2 => PackForm::Sealed,
            other => return Err(PackFlaw::Version(*other)),
        };
        let (plain_bytes, rest) = rest.split_first_chunk::<8>().ok_or(PackFlaw::Short)?;
        let (base, rest) = rest.split_first_chunk::<32>().ok_or(PackFlaw::Short)?;
        let (checksum, frame) = rest.split_first_chunk::<32>().ok_or(PackFlaw::Short)?;
        let head = PackHead {
            form,
            depth: *depth,
            plain_bytes: u64::from_le_bytes(*plain_bytes),
            base: (*depth > 0).then_some(PackId(*base)),
            checksum: *checksum,
        };
        let sane = head.plain_bytes <= MAX_PLAIN && (*depth > 0 || *base == [0; 32]);
        sane.then_some((head, frame)).ok_or(PackFlaw::Head)
    }

    fn compute_checksum(&self, frame: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("compact archive pack 1 checksum");
        *hasher
            .update(&self.encode_fields())
            .update(frame)
            .finalize()
            .as_bytes()
    }
}

/// Returns the stored form of `plain` under the name `id`, sealed where there is a key.
pub(super) fn encode(
    plain: &[u8],
    history: &PackHistory,
    id: &PackId,
    seal: Option<&Seal>,
) -> std::io::Result<Vec<u8>> {
    encode_at(LEVEL, plain, history, (id, seal))
}

/// Returns the same of what was made from packs.
pub(super) fn encode_derived(
    plain: &[u8],
    id: &PackId,
    seal: Option<&Seal>,
) -> std::io::Result<Vec<u8>> {
    encode_at(LEVEL_OF_DERIVED, plain, &PackHistory::default(), (id, seal))
}

fn encode_at(
    level: CompressionLevel,
    plain: &[u8],
    history: &PackHistory,
    (id, seal): (&PackId, Option<&Seal>),
) -> std::io::Result<Vec<u8>> {
    let mut frame = compress(level, plain, &history.bytes)
        .map_err(|code| std::io::Error::other(get_error_name(code)))?;
    pad(&mut frame, smallest_frame(plain.len() as u64, history));
    let (head, frame) = match seal {
        None => (PackHead::new(plain, history, PackForm::Clear), frame),
        Some(seal) => {
            let head = PackHead::new(plain, history, PackForm::Sealed);
            let sealed = seal.seal(&id.0, &head.encode_fields(), &frame);
            let sealed = sealed.map_err(|_| std::io::Error::other("it cannot be encrypted"))?;
            (head, sealed)
        }
    };
    let mut out = head.encode_fields();
    out.extend_from_slice(&head.compute_checksum(&frame));
    out.extend_from_slice(&frame);
    Ok(out)
}

/// Returns how many bytes a frame must have at least that decodes to so many.
fn smallest_frame(plain_bytes: u64, history: &PackHistory) -> u64 {
    let free = FREE_TO_WRITE.saturating_sub(history.unpaid);
    let unpaid = history.unpaid_bytes(plain_bytes, 0);
    unpaid.saturating_sub(free).div_ceil(MAX_RATIO)
}

/// Lengthens a frame by one that is skipped.
fn pad(frame: &mut Vec<u8>, least: u64) {
    let missing = usize::try_from(least)
        .unwrap_or(usize::MAX)
        .saturating_sub(frame.len());
    if missing > 0 {
        frame.extend_from_slice(&SKIPPABLE);
        frame.extend_from_slice(&u32::try_from(missing).unwrap_or(u32::MAX).to_le_bytes());
        frame.resize(frame.len() + missing, 0);
    }
}

/// Reads the head of a whole pack and checks that nothing in the pack has changed.
pub(super) fn check(pack: &[u8]) -> Result<PackHead, PackFlaw> {
    let (head, frame) = PackHead::split(pack)?;
    let intact = head.compute_checksum(frame) == head.checksum;
    intact.then_some(head).ok_or(PackFlaw::Checksum)
}

/// Returns the frame of a pack, opened where it is sealed.
fn open_frame<'a>(
    head: &PackHead,
    frame: &'a [u8],
    id: &PackId,
    seal: Option<&Seal>,
) -> Result<Cow<'a, [u8]>, PackFlaw> {
    if head.form == PackForm::Clear {
        return Ok(Cow::Borrowed(frame));
    }
    let plain = seal.and_then(|seal| seal.open(&id.0, &head.encode_fields(), frame).ok());
    plain.map(Cow::Owned).ok_or(PackFlaw::Locked)
}

/// Returns what the pack `id` holds, which was [`check`]ed, given what stands below it.
pub(super) fn decode(
    pack: &[u8],
    id: &PackId,
    history: &PackHistory,
    seal: Option<&Seal>,
) -> Result<DecodedFrame, PackFlaw> {
    let (head, frame) = PackHead::split(pack)?;
    let frame = open_frame(&head, frame, id, seal)?;
    let stored = frame.len() as u64;
    let unpaid = history.unpaid_bytes(head.plain_bytes, stored);
    if unpaid > FREE_BYTES.saturating_sub(history.unpaid) {
        let plain = head.plain_bytes;
        return Err(PackFlaw::Bomb { stored, plain });
    }
    let declared = usize::try_from(head.plain_bytes).map_err(|_| PackFlaw::Head)?;
    let mut plain = Vec::new();
    plain
        .try_reserve_exact(declared)
        .map_err(|error| PackFlaw::Frame(error.to_string()))?;
    let mut decoder = DCtx::create();
    // The buffer's capacity bounds the output: a frame that holds more is an error, not a bomb.
    decoder
        .ref_prefix(&history.bytes)
        .and_then(|_| decoder.decompress(&mut plain, &frame))
        .map_err(|code| PackFlaw::Frame(get_error_name(code).to_owned()))?;
    (plain.len() == declared)
        .then_some(DecodedFrame { plain, unpaid })
        .ok_or(PackFlaw::Head)
}

fn compress(level: CompressionLevel, plain: &[u8], prefix: &[u8]) -> Result<Vec<u8>, ErrorCode> {
    // The window must reach from the end of the input to the start of the history.
    let reach = (plain.len() + prefix.len())
        .max(1 << 17)
        .next_power_of_two();
    let mut encoder = CCtx::create();
    encoder.set_parameter(CParameter::CompressionLevel(level))?;
    encoder.set_parameter(CParameter::WindowLog(reach.trailing_zeros()))?;
    let looks_far = level == LEVEL && reach > LONG_REACH;
    encoder.set_parameter(CParameter::EnableLongDistanceMatching(looks_far))?;
    encoder.ref_prefix(prefix)?;
    let mut frame = Vec::with_capacity(compress_bound(plain.len()));
    encoder.compress2(&mut frame, plain)?;
    Ok(frame)
}

/// Returns a pack with a sound checksum whose head declares `declared` and whose frame holds `actual`.
#[cfg(test)]
pub(super) fn forged(declared: &[u8], actual: &[u8], history: &PackHistory) -> Vec<u8> {
    let head = PackHead::new(declared, history, PackForm::Clear);
    let frame = compress(LEVEL, actual, &history.bytes).unwrap();
    [
        head.encode_fields(),
        head.compute_checksum(&frame).to_vec(),
        frame,
    ]
    .concat()
}
