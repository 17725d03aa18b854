package command

// The texts of errors, byte for byte as in Redis 8. Texts that several commands use are only here.

import "bytes"

// Error texts.
const (
	ErrWrongType       = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrSyntax          = "ERR syntax error"
	ErrNotInt          = "ERR value is not an integer or out of range"
	ErrNotFloat        = "ERR value is not a valid float"
	ErrNoSuchKey       = "ERR no such key"
	ErrOutOfRange      = "ERR value is out of range"
	ErrCountRange      = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
	ErrNotPositive     = "ERR value is out of range, must be positive"
	ErrIndexRange      = "ERR index out of range"
	ErrOffset          = "ERR offset is out of range"
	ErrOverflow        = "ERR increment or decrement would overflow"
	ErrNaNInfinity     = "ERR increment would produce NaN or Infinity"
	ErrTimeoutNotFloat = "ERR timeout is not a float or out of range"
	ErrTimeoutNotInt   = "ERR timeout is not an integer or out of range"
	ErrTimeoutNegative = "ERR timeout is negative"
	ErrTimeoutRange    = "ERR timeout is out of range"
	ErrDBIndex         = "ERR DB index is out of range"
	ErrInvalidCursor   = "ERR invalid cursor"
	ErrStringTooLong   = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrMinMaxFloat     = "ERR min or max is not a float"
	ErrMinMaxLex       = "ERR min or max not valid string range item"
	ErrExecAbort       = "EXECABORT Transaction discarded because of previous errors."
	ErrNoScript        = "NOSCRIPT No matching script. Please use EVAL."
	ErrNoAuth          = "NOAUTH Authentication required."
	ErrWrongPass       = "WRONGPASS invalid username-password pair or user is disabled."
	ErrNoProto         = "NOPROTO unsupported protocol version"
	ErrNoNamespace     = "ERR there is no namespace of this name"
	ErrReadOnly        = "READONLY You can't write against a read only replica."
	ErrMasterDown      = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."
	ErrNoReplicas      = "NOREPLICAS Not enough good replicas to write."
	ErrOutOfMemory     = "OOM command not allowed when used memory > 'maxmemory'."
	ErrCrossSlot       = "CROSSSLOT Keys in request don't hash to the same slot"
	ErrNotBusy         = "NOTBUSY No scripts in execution right now."
	ErrUnkillable      = "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
	ErrScriptCommand   = "ERR This Redis command is not allowed from script"
	ErrSubscribed      = "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
	ErrInternal        = "ERR internal error"
)

// NoReplication is the reason why commands and parameters of replication are refused.
const NoReplication = "limitkv does not replicate"

// Redacted replaces secret arguments in logs.
const Redacted = "(redacted)"

// ErrArity is the error for a wrong number of arguments of the command.
func ErrArity(fullName string) string {
	return "ERR wrong number of arguments for '" + fullName + "' command"
}

// ErrInvalidExpire is the error for an expire time that a command refuses.
func ErrInvalidExpire(name string) string {
	return "ERR invalid expire time in '" + name + "' command"
}

// ErrUnknownSubcommand is the error for a subcommand that does not exist.
func ErrUnknownSubcommand(container string, sub []byte) string {
	return "ERR unknown subcommand '" + Repeat(sub, RepeatBytesMax) + "'. Try " + container + " HELP."
}

// ErrSubcommandSyntax is the error for a subcommand with arguments that its arity allows and its syntax does not.
func ErrSubcommandSyntax(container string, sub []byte) string {
	return "ERR unknown subcommand or wrong number of arguments for '" + Repeat(sub, RepeatBytesMax) + "'. Try " + container + " HELP."
}

// ErrNoConnection is the error for a command about its connection that comes from a primary or a log.
const ErrNoConnection = "ERR it is for clients alone, not for a primary's stream or a log"

// RepeatBytesMax is how many bytes of an argument errors repeat.
const RepeatBytesMax = 128

// Repeat returns an argument as errors repeat it: its first bytes, up to a zero byte, which ends a text in C.
func Repeat(arg []byte, most int) string {
	arg = arg[:min(len(arg), most)]
	if i := bytes.IndexByte(arg, 0); i >= 0 {
		arg = arg[:i]
	}
	return string(arg)
}
