package tool

// A Code is stable: tests, rules, clients and the audit log may depend on it. A code is never reused
// and never changes its meaning.
type Code string

// The codes. Each one is used by at least one tool or stage (a test sees to it), and two causes never share one.
const (
	InputInvalid        Code = "INPUT_INVALID"
	UnknownTool         Code = "UNKNOWN_TOOL"
	ToolDisabled        Code = "TOOL_DISABLED"
	PermissionDenied    Code = "PERMISSION_DENIED"
	AskUnavailable      Code = "ASK_UNAVAILABLE"
	UserDeclined        Code = "USER_DECLINED"
	PlanMode            Code = "PLAN_MODE"
	HookBlocked         Code = "HOOK_BLOCKED"
	OutsideRoots        Code = "OUTSIDE_ROOTS"
	PathRefused         Code = "PATH_REFUSED"
	FileNotFound        Code = "FILE_NOT_FOUND"
	IsDirectory         Code = "IS_DIRECTORY"
	NotDirectory        Code = "NOT_DIRECTORY"
	NotRegular          Code = "NOT_REGULAR"
	BinaryFile          Code = "BINARY_FILE"
	EncodingUnsupported Code = "ENCODING_UNSUPPORTED"
	TooLarge            Code = "TOO_LARGE"
	Busy                Code = "BUSY"
	WriteFailed         Code = "WRITE_FAILED"
	RollbackFailed      Code = "ROLLBACK_FAILED"
	Interrupted         Code = "CANCELLED"
	Timeout             Code = "TIMEOUT"
	StateUnavailable    Code = "STATE_UNAVAILABLE"
	ResultTooLarge      Code = "RESULT_TOO_LARGE"
	Internal            Code = "INTERNAL"
	NoChange            Code = "NO_CHANGE"
	FileExists          Code = "FILE_EXISTS"
	Notebook            Code = "NOTEBOOK"
	NotebookInvalid     Code = "NOTEBOOK_INVALID"
	FileNotRead         Code = "FILE_NOT_READ"
	FilePartlyRead      Code = "FILE_PARTLY_READ"
	FileChanged         Code = "FILE_CHANGED"
	StringNotFound      Code = "STRING_NOT_FOUND"
	MultipleMatches     Code = "MULTIPLE_MATCHES"
	CountMismatch       Code = "COUNT_MISMATCH"
	EncodingMix         Code = "ENCODING_MIX"
	Cascade             Code = "CASCADE"
	PatternInvalid      Code = "PATTERN_INVALID"
	RegexInvalid        Code = "REGEX_INVALID"
	CommandFailed       Code = "COMMAND_FAILED"
	OutputLimit         Code = "OUTPUT_LIMIT"
	SandboxUnavailable  Code = "SANDBOX_UNAVAILABLE"
	JobUnknown          Code = "JOB_UNKNOWN"
	JobLimit            Code = "JOB_LIMIT"

	// Of the team endpoint.
	RateLimited          Code = "RATE_LIMITED"
	ScopeMissing         Code = "SCOPE_MISSING"
	WorkspaceUnavailable Code = "WORKSPACE_UNAVAILABLE"
	AuditUnavailable     Code = "AUDIT_UNAVAILABLE"
)
