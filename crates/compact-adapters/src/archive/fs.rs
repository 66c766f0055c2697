//! A directory as an object store: private, durable, exclusive.
//!
//! `object_store` stages, syncs and publishes files; what it leaves to the umask is done here. A
//! directory is closed to others before a file appears in it, so there is no moment at which
//! anyone else could open one.

use std::fmt;
use std::path::Path as FsPath;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::leftover;
use crate::private::{self, PathKind};

/// A [`LocalFileSystem`] whose directories are 0700 and whose files are 0600.
#[derive(Debug)]
pub(super) struct PrivateFiles {
    files: LocalFileSystem,
    /// The same files, of which nobody waits until they are on the disk.
    hasty: LocalFileSystem,
}

impl PrivateFiles {
    /// Opens `root`, creating it if it is not there.
    pub(super) fn open(root: &FsPath) -> Result<PrivateFiles> {
        private::create_dir(root).map_err(generic_error)?;
        let hasty = LocalFileSystem::new_with_prefix(root)?;
        let files = LocalFileSystem::new_with_prefix(root)?.with_fsync(true);
        Ok(PrivateFiles { files, hasty })
    }

    /// Returns what writes an object: one that is made again where it is missing or cut short need not be on the disk.
    fn writer_of(&self, location: &Path) -> &LocalFileSystem {
        let folder = location.parts().next();
        match folder.is_some_and(|folder| folder.as_ref() == super::DERIVED) {
            true => &self.hasty,
            false => &self.files,
        }
    }

    /// Makes every directory between the root and `location` exist and closes it to others.
    fn prepare(&self, location: &Path) -> Result<()> {
        let mut dir = Path::default();
        let mut parts = location.parts().peekable();
        while let Some(part) = parts.next() {
            dir = dir.join(part);
            if parts.peek().is_some() {
                let path = self.files.path_to_filesystem(&dir)?;
                private::create_dir(&path).map_err(generic_error)?;
                private::restrict_to_owner(&path, PathKind::Dir).map_err(generic_error)?;
            }
        }
        Ok(())
    }

    /// Removes what processes left beside `location` that were killed while they wrote: a file is
    /// staged under its name with `#` and a number behind.
    fn remove_abandoned(&self, location: &Path) {
        let place = self.files.path_to_filesystem(location).ok();
        let folder = place.as_deref().and_then(FsPath::parent);
        if let Some(folder) = folder {
            leftover::remove_leftovers(folder, |name| name.contains(".pack#"));
        }
    }
}

fn generic_error(source: std::io::Error) -> Error {
    Error::Generic {
        store: "file system",
        source: source.into(),
    }
}

impl fmt::Display for PrivateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for PrivateFiles {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.prepare(location)?;
        self.remove_abandoned(location);
        let writer = self.writer_of(location);
        let result = writer.put_opts(location, payload, opts).await?;
        let path = self.files.path_to_filesystem(location)?;
        private::restrict_to_owner(&path, PathKind::File).map_err(generic_error)?;
        Ok(result)
    }

    async fn put_multipart_opts(
        &self,
        _location: &Path,
        _opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(Error::NotImplemented {
            operation: "multipart upload".to_owned(),
            implementer: self.to_string(),
        })
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.prepare(to)?;
        self.files.copy_opts(from, to, options).await
    }
}
