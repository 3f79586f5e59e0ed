//! Chromium without a window, over the pipe of its DevTools protocol: messages in JSON that end with a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::Folder;

/// Names of the program.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Time limit for a response. The first one comes after the program has started, which takes seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Events about messages on the console: those of scripts, of exceptions, and of the browser about the page.
const CONSOLE: [&str; 3] = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];

/// Browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    asked: u64,
    session: String,
    console: Vec<String>,
    has_loaded: bool,
    _folder: Folder,
}

impl Browser {
    /// Starts a browser. Without the program, returns `None` and says that the test is skipped.
    pub(crate) fn start(test: &str) -> Option<Browser> {
        let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        let Some(program) = PROGRAMS.into_iter().find(is_there) else {
            // Not a macro, because the test harness captures the output of macros.
            super::skip(format_args!("{test} needs chromium"));
            return None;
        };
        let folder = Folder::new("browser");
        let profile = format!("--user-data-dir={}", folder.write("profile", "").with_extension("d").display());
        // The browser reads requests from descriptor 3 and writes responses to descriptor 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", program])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--hide-scrollbars", &profile])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, console) = (String::new(), Vec::new());
        let mut browser =
            Browser { child, input, messages, asked: 0, session, console, has_loaded: false, _folder: folder };
        browser.open();
        Some(browser)
    }

    fn open(&mut self) {
        let target = self.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = self.call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        self.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, &json!({}));
        }
    }

    /// Sends a request and returns the result.
    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let mut request = json!({ "id": self.asked, "method": method, "params": parameters });
        if !self.session.is_empty() {
            request["sessionId"] = Value::from(self.session.as_str());
        }
        self.input.write_all(format!("{request}\0").as_bytes()).expect("the browser reads");
        loop {
            let message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no response to {method}"));
            if message["id"] == self.asked {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.handle_event(&message);
        }
    }

    fn handle_event(&mut self, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        self.has_loaded |= method == "Page.loadEventFired";
        if CONSOLE.contains(&method) {
            self.console.push(message["params"].to_string());
        }
    }

    /// Sets the size of the screen, with or without a dark colour scheme.
    pub(crate) fn show(&mut self, (width, height): (u32, u32), scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Allows or forbids scripts of pages.
    pub(crate) fn run_scripts(&mut self, allowed: bool) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({ "value": !allowed }));
    }

    /// Opens an address and waits until the page has loaded.
    pub(crate) fn open_page(&mut self, url: &str) {
        self.has_loaded = false;
        let result = self.call("Page.navigate", &json!({ "url": url }));
        assert!(result["errorText"].is_null(), "{url}: {result}");
        self.wait_for_page();
    }

    /// Runs a script that leads to another page, and waits until that has loaded.
    pub(crate) fn follow(&mut self, script: &str) {
        self.has_loaded = false;
        self.run(script);
        self.wait_for_page();
    }

    fn wait_for_page(&mut self) {
        while !self.has_loaded {
            let message = self.messages.recv_timeout(PATIENCE).expect("the page loads");
            self.handle_event(&message);
        }
    }

    /// Runs a script and returns its value.
    pub(crate) fn run(&mut self, script: &str) -> Value {
        let result = self.call("Runtime.evaluate", &json!({ "expression": script, "returnByValue": true }));
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        result["result"]["value"].clone()
    }

    /// Returns the whole page as a picture: PNG in base64.
    pub(crate) fn picture(&mut self) -> String {
        let result = self.call("Page.captureScreenshot", &json!({ "captureBeyondViewport": true }));
        result["data"].as_str().expect("a picture").to_owned()
    }

    /// Messages on the console so far.
    pub(crate) fn console(&self) -> &[String] {
        &self.console
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
