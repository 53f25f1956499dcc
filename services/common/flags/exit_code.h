// Exit codes of the servers, for whoever supervises them; those of the client are its own
// (services/cli/output/exit_code.h). docs/operations.md says what to do about each.
#ifndef STAGECOACH_SERVICES_COMMON_FLAGS_EXIT_CODE_H_
#define STAGECOACH_SERVICES_COMMON_FLAGS_EXIT_CODE_H_

namespace stagecoach {

// Ended in order: 0.
// The shutdown did not end in time, or the parent died (--die-with-parent).
inline constexpr int kForcedExitCode = 1;
// Did not start for what may pass: a port or a folder in use, a card that is away.
inline constexpr int kNotStartedExitCode = 2;
// A stage whose device is lost to this process; only a new one can use it again.
inline constexpr int kDeviceLostExitCode = 3;
// A coordinator whose state folder is not its own any more: somebody removed its lock.
inline constexpr int kFolderLostExitCode = 4;
// Its gRPC port has not answered this process itself for about half a minute; a new one will.
inline constexpr int kUnreachableExitCode = 5;
// The command line or this build cannot do what is asked: starting it again is of no use.
inline constexpr int kRefusedExitCode = 78;  // EX_CONFIG of sysexits.h

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_FLAGS_EXIT_CODE_H_
