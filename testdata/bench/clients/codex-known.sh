# Codex, with a model that it knows: it defers all tools behind its own search
# model: responses
# needs: @openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex
mkdir "$HOME/.codex"
cat >"$HOME/.codex/config.toml" <<END
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = "$MODEL/v1"
wire_api = "responses"
[mcp_servers.codehand]
command = "$CODEHAND"
args = ["stdio"]
tool_timeout_sec = 600
startup_timeout_sec = 20
default_tools_approval_mode = "approve"
END
exec "$MODULES/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex" exec --skip-git-repo-check \
	"$PROMPT" </dev/null
