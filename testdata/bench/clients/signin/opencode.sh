# opencode
# model: chat
# needs: opencode-linux-x64/bin/opencode
export OPENCODE_CONFIG="$HOME/scripted.json"
cat >"$OPENCODE_CONFIG" <<END
{"autoupdate":false,"share":"disabled","permission":{"*":"allow"},
"mcp":{"codehand":{"type":"remote","url":"$URL","enabled":true}},
"provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"$MODEL/v1","apiKey":"none"},
"models":{"fake":{"name":"fake","tool_call":true,"limit":{"context":200000,"output":8000}}}}}}
END
# One that ended while it held the lock of its tokens leaves it, and the next waits for it longer than for its servers.
rm -rf "$HOME/.local/state/opencode/locks"
case $STEP in
login) exec "$MODULES/opencode-linux-x64/bin/opencode" mcp auth codehand ;;
use) exec "$MODULES/opencode-linux-x64/bin/opencode" run -m scripted/fake "$PROMPT" </dev/null ;;
esac
