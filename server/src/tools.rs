//! The tools, as the client sees them: their names, their arguments, their answers.
//!
//! What is wrong with the arguments is an error of the protocol; what goes wrong with the work is an
//! answer, marked as an error, that the client can read.

use std::sync::Arc;
use std::time::Duration;

use mortmain::Namespace;
use rmcp::handler::server::tool::parse_json_object;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use crate::claims::{self, Listed};
use crate::notes::{Change, Notes};
use crate::shell::{Commands, Ran};

/// How long a command may take unless it is said, in milliseconds.
const TIMEOUT_MS: u64 = 120_000;
/// How long it may take at most.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// The longest command line, in bytes: the kernel takes 32 pages of one argument, with a NUL at its end.
const COMMAND_BYTES_MAX: usize = 32 * 4096 - 1;

/// The requests of the protocol that are answered here.
const METHODS: [&str; 2] = ["tools/call", "tools/list"];

const INSTRUCTIONS: &str = "Commands run in a session directory that is removed when the server \
    ends. Their PATH begins with helper programs: `mortmain-session` prints the session directory, \
    `mortmain-note WORD…` adds a note.";

/// The arguments of `shell`.
#[derive(Deserialize, JsonSchema, Debug)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct Shell {
    /// The command line, for `sh`, of less than 128 KiB. It has no input.
    command: String,
    /// How long it may take, in milliseconds; 120000 if it is not said, 3600000 at most.
    #[schemars(range(min = 1, max = 3_600_000))]
    timeout_ms: Option<u64>,
}

/// The arguments of `list_claims`.
#[derive(Deserialize, JsonSchema, Debug)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct ListClaims {}

/// The arguments of `notes`.
#[derive(Deserialize, JsonSchema, Debug)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
struct ChangeNotes {
    /// A note to be added at the end.
    add: Option<String>,
    /// The number of a note to be removed, counted from 1.
    #[schemars(range(min = 1))]
    remove: Option<usize>,
}

/// All notes, after the change.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(crate = "rmcp::schemars")]
struct Noted {
    notes: Vec<String>,
}

/// What one client talks to.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) commands: Arc<Commands>,
    pub(crate) namespace: Namespace,
    pub(crate) notes: Notes,
}

impl Tools {
    async fn shell(
        &self,
        Shell { command, timeout_ms }: Shell,
        withdrawn: impl Future<Output = ()>,
    ) -> Result<CallToolResult, ErrorData> {
        let millis = timeout_ms.unwrap_or(TIMEOUT_MS);
        if !(1..=TIMEOUT_MS_MAX).contains(&millis) {
            let why = format!("timeout_ms is {millis}; it has to be from 1 to {TIMEOUT_MS_MAX}");
            return Err(ErrorData::invalid_params(why, None));
        }
        if command.len() > COMMAND_BYTES_MAX {
            let why = format!(
                "command has {} bytes; the system takes at most {COMMAND_BYTES_MAX}: write it to a \
                 file, and let `sh` read that",
                command.len()
            );
            return Err(ErrorData::invalid_params(why, None));
        }
        if command.contains('\0') {
            return Err(ErrorData::invalid_params("no command line has a NUL in it", None));
        }
        match self.commands.run(&command, Duration::from_millis(millis), withdrawn).await {
            Ok(ran) if ran.timed_out => value(&ran).map(CallToolResult::structured_error),
            Ok(ran) => value(&ran).map(CallToolResult::structured),
            Err(why) => Ok(failed(why)),
        }
    }

    async fn list_claims(&self) -> Result<CallToolResult, ErrorData> {
        let namespace = self.namespace.clone();
        match spawn_blocking(move || claims::list(&namespace)).await {
            Ok(listed) => value(&listed).map(CallToolResult::structured),
            Err(error) => Ok(failed(error)),
        }
    }

    async fn notes(&self, asked: ChangeNotes) -> Result<CallToolResult, ErrorData> {
        let change = match (asked.add, asked.remove) {
            (Some(_), Some(_)) => {
                let why = "one change at a time: give `add` or `remove`";
                return Err(ErrorData::invalid_params(why, None));
            }
            (Some(text), None) => Some(Change::Add(text)),
            (None, Some(0)) => {
                return Err(ErrorData::invalid_params("notes are counted from 1", None));
            }
            (None, Some(number)) => Some(Change::Remove(number)),
            (None, None) => None,
        };
        if let Some(change) = change {
            match self.notes.change_async(change).await {
                Ok(true) => {}
                Ok(false) => return Ok(failed("there is no note of that number")),
                Err(error) => return Ok(failed(error)),
            }
        }
        match self.notes.all().await {
            Ok(notes) => value(&Noted { notes }).map(CallToolResult::structured),
            Err(error) => Ok(failed(error)),
        }
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("mortmain-server", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let answer = match &*request.name {
            "shell" => {
                let withdrawn = context.ct.cancelled();
                self.shell(parse_json_object(arguments)?, withdrawn).await?
            }
            "list_claims" => {
                let ListClaims {} = parse_json_object(arguments)?;
                self.list_claims().await?
            }
            "notes" => self.notes(parse_json_object(arguments)?).await?,
            other => {
                let why = format!("there is no tool `{other}`");
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        Ok(answer.into())
    }

    /// A request that the SDK does not know; one that it knows comes here as well if its parameters are
    /// not what such a request has.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if METHODS.contains(&&*method) {
            let why = format!("these are no parameters of `{method}`");
            return Err(ErrorData::invalid_params(why, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}

/// What `tools/list` tells.
fn all() -> Vec<Tool> {
    let tool = |name, about| Tool::new(name, about, rmcp::model::JsonObject::new());
    vec![
        tool(
            "shell",
            "Run a command line in the session directory. What it leaves running in its process \
             group is ended with it; what it starts by `setsid -f` goes on.",
        )
        .with_input_schema::<Shell>()
        .with_output_schema::<Ran>(),
        tool(
            "list_claims",
            "Tell every claim, this server's own among them, whether a sweep would remove it, and why.",
        )
        .with_input_schema::<ListClaims>()
        .with_output_schema::<Listed>()
        .with_annotations(ToolAnnotations::new().read_only(true)),
        tool("notes", "Tell all notes, after adding one or removing one if that is asked for.")
            .with_input_schema::<ChangeNotes>()
            .with_output_schema::<Noted>(),
    ]
}

fn value(answer: &impl Serialize) -> Result<serde_json::Value, ErrorData> {
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Work that could not be done.
fn failed(why: impl ToString) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why.to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_its_schemas() {
        let tools = all();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["shell", "list_claims", "notes"]);
        for tool in &tools {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert!(tool.output_schema.is_some(), "{}", tool.name);
        }
        let timeout = &tools[0].input_schema["properties"]["timeout_ms"];
        assert_eq!((&timeout["minimum"], &timeout["maximum"]), (&1.into(), &TIMEOUT_MS_MAX.into()));
        assert_eq!(tools[2].input_schema["properties"]["remove"]["minimum"], 1);
    }
}
