# Codex, with a model that it does not know: it shows all tools, and cuts results early
# snippet: codex
# model: responses
# needs: @openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex
mkdir -p "$HOME/.codex"
test -e "$HOME/.codex/config.toml" || cat >"$HOME/.codex/config.toml" <<END
[mcp_servers.codehand]
command = "$CODEHAND"
args = ["stdio"]
tool_timeout_sec = 600
startup_timeout_sec = 20
END
exec "$MODULES/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex" exec --skip-git-repo-check \
	--dangerously-bypass-approvals-and-sandbox -c model=my-own -c model_provider=scripted \
	-c "model_providers.scripted={name=\"scripted\",base_url=\"$MODEL/v1\",wire_api=\"responses\"}" \
	-c mcp_servers.codehand.default_tools_approval_mode=approve "$PROMPT" </dev/null
