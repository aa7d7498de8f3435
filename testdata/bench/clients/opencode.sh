# opencode
# snippet: opencode
# model: chat
# needs: opencode-linux-x64/bin/opencode
mkdir -p "$HOME/.config/opencode"
test -e "$HOME/.config/opencode/opencode.json" || cat >"$HOME/.config/opencode/opencode.json" <<END
{"mcp":{"codehand":{"type":"local","command":["$CODEHAND","stdio"],"enabled":true}}}
END
export OPENCODE_CONFIG="$HOME/scripted.json"
cat >"$OPENCODE_CONFIG" <<END
{"autoupdate":false,"share":"disabled","permission":{"*":"allow"},
"provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"$MODEL/v1","apiKey":"none"},
"models":{"fake":{"name":"fake","tool_call":true,"limit":{"context":200000,"output":8000}}}}}}
END
exec "$MODULES/opencode-linux-x64/bin/opencode" run -m scripted/fake "$PROMPT" </dev/null
