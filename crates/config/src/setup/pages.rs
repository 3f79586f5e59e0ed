//! HTTP pages.

use std::borrow::Cow;
use std::sync::Arc;

use engine::LocalFuture;
use engine::tls::TlsServer;

/// HTTP page.
pub struct Page {
    /// Address of the HTTP server, as `[HOST]:PORT`.
    pub address: String,
    /// Path.
    pub path: Cow<'static, str>,
    /// TLS configuration. It applies to all pages of the address.
    pub tls: Option<Arc<dyn TlsServer>>,
    /// Handler. Its argument is the query string of the URL.
    pub make: Arc<MakePage>,
}

/// Handler of a page: takes the query string of the URL, returns the response.
pub type MakePage = dyn Fn(&str) -> LocalFuture<'static, PageContent> + Send + Sync;

impl Page {
    /// Returns a page that ignores the query string and is produced synchronously.
    pub fn new(
        address: String,
        path: impl Into<Cow<'static, str>>,
        make: impl Fn() -> PageContent + Send + Sync + 'static,
    ) -> Page {
        let make = Arc::new(move |_: &str| Box::pin(core::future::ready(make())) as LocalFuture<'static, PageContent>);
        Page { address, path: path.into(), tls: None, make }
    }
}

/// HTTP response.
pub struct PageContent {
    /// Status code.
    pub status: u16,
    /// Content type.
    pub content_type: &'static str,
    /// Body.
    pub body: Cow<'static, [u8]>,
}

impl PageContent {
    /// Returns a response of plain text.
    pub fn text(status: u16, body: impl Into<Cow<'static, str>>) -> PageContent {
        let body = match body.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        PageContent { status, content_type: "text/plain; charset=utf-8", body }
    }
}
