//! Adapts a store that the user wrote in Python (`put`, `get`, `names`) to the object store interface that
//! archive and catalog use. Ranges and conditions are evaluated by a store in memory.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::callback::call_python;

/// An object store that is implemented in Python.
#[derive(Clone, Debug)]
pub(crate) struct PythonObjects {
    storage: Arc<Py<PyAny>>,
}

impl PythonObjects {
    pub(crate) fn new(storage: Py<PyAny>) -> PythonObjects {
        PythonObjects {
            storage: Arc::new(storage),
        }
    }

    fn save_object(&self, name: &str, data: &[u8]) -> Result<()> {
        let save = |py: Python<'_>| {
            let arguments = (name, PyBytes::new(py, data));
            self.storage.call_method1(py, "put", arguments).map(drop)
        };
        call_python(save).map_err(store_error)
    }

    fn load_object(&self, name: &str) -> Result<Option<Bytes>> {
        let load = |py: Python<'_>| {
            let found = self.storage.call_method1(py, "get", (name,))?;
            let found = found.extract::<Option<PyBackedBytes>>(py);
            let found = found.map_err(PyErr::from)?;
            Ok(found.map(|data| Bytes::copy_from_slice(&data)))
        };
        call_python(load).map_err(store_error)
    }

    fn list_names(&self, prefix: &str) -> Result<Vec<String>> {
        let list = |py: Python<'_>| {
            let names = self.storage.call_method1(py, "names", (prefix,))?;
            let names = names.bind(py).try_iter()?;
            names.map(|name| name?.extract::<String>()).collect()
        };
        call_python(list).map_err(store_error)
    }

    fn remove_object(&self, name: &str) -> Result<()> {
        let remove = |py: Python<'_>| self.storage.call_method1(py, "remove", (name,)).map(drop);
        call_python(remove).map_err(store_error)
    }

    /// Returns a store in memory that lists the names below a prefix, without their contents.
    async fn list_below(&self, prefix: Option<&Path>) -> Result<InMemory> {
        let prefix = prefix.map_or_else(String::new, |prefix| format!("{prefix}/"));
        let listed = InMemory::new();
        for name in self.list_names(&prefix)? {
            if let Ok(place) = Path::parse(&name) {
                listed.put(&place, PutPayload::new()).await?;
            }
        }
        Ok(listed)
    }
}

fn store_error(error: PyErr) -> Error {
    Error::Generic {
        store: "storage",
        source: error.into(),
    }
}

impl fmt::Display for PythonObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a storage written in Python")
    }
}

#[async_trait]
impl ObjectStore for PythonObjects {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let name = location.as_ref();
        if opts.mode == PutMode::Create && self.load_object(name)?.is_some() {
            return Err(Error::AlreadyExists {
                path: name.to_owned(),
                source: "it was put before".into(),
            });
        }
        let data = Bytes::from(payload);
        self.save_object(name, &data)?;
        InMemory::new().put(location, data.into()).await
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
        let found = InMemory::new();
        if let Some(data) = self.load_object(location.as_ref())? {
            found.put(location, data.into()).await?;
        }
        found.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let objects = self.clone();
        let remove = move |place: Result<Path>| {
            let place = place?;
            objects.remove_object(place.as_ref()).map(|()| place)
        };
        locations.map(remove).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (objects, prefix) = (self.clone(), prefix.cloned());
        let listed = async move {
            let listed = objects.list_below(prefix.as_ref()).await?;
            Ok::<_, Error>(listed.list(prefix.as_ref()))
        };
        stream::once(listed).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.list_below(prefix)
            .await?
            .list_with_delimiter(prefix)
            .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, _options: CopyOptions) -> Result<()> {
        let data = self
            .get_opts(from, GetOptions::default())
            .await?
            .bytes()
            .await?;
        self.save_object(to.as_ref(), &data)
    }
}
