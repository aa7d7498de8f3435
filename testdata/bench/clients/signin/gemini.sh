# Gemini CLI
# model: gemini
# needs: @google/gemini-cli/package.json
# expiry: clock
mkdir -p "$HOME/.gemini" "$WORK/.gemini"
cat >"$HOME/.gemini/settings.json" <<JSON
{"mcpServers":{"codehand":{"httpUrl":"$URL","trust":true,"oauth":{"enabled":true}}}}
JSON
cat >"$WORK/.gemini/settings.json" <<JSON
{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},
"general":{"disableAutoUpdate":true}}
JSON
export GEMINI_CLI_TRUST_WORKSPACE=true # it reads a project's settings only then
export GOOGLE_GEMINI_BASE_URL="$MODEL" GEMINI_API_KEY=none GEMINI_TELEMETRY_ENABLED=false GEMINI_FORCE_FILE_STORAGE=true
gemini="node $MODULES/.bin/gemini -m gemini-2.5-flash --skip-trust -y"
case $STEP in
login) yes | $gemini -p "Do nothing." || : ;; # it asks whether it may open a browser
use) exec $gemini -p "$PROMPT" </dev/null ;;
esac
