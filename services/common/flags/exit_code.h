// Exit codes of the servers, for their supervisors. The client has its own
// (services/cli/output/exit_code.h). docs/operations.md has the remedy for each.
#ifndef STAGECOACH_SERVICES_COMMON_FLAGS_EXIT_CODE_H_
#define STAGECOACH_SERVICES_COMMON_FLAGS_EXIT_CODE_H_

namespace stagecoach {

// Ended in order: 0.
// The shutdown did not end in time, or the parent died (--die-with-parent).
inline constexpr int kForcedExitCode = 1;
// Did not start for a reason that may pass: a port or a folder in use, a card that is away.
inline constexpr int kNotStartedExitCode = 2;
// A stage whose device is lost to this process; only a new one can use it again.
inline constexpr int kDeviceLostExitCode = 3;
// A coordinator whose state folder is not its own any more: somebody removed its lock.
inline constexpr int kFolderLostExitCode = 4;
// Its gRPC port has not answered for about half a minute, not even this process; a new one will.
inline constexpr int kUnreachableExitCode = 5;
// The command line or this build cannot do the request: starting it again does not help.
inline constexpr int kRefusedExitCode = 78;  // EX_CONFIG of sysexits.h

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_FLAGS_EXIT_CODE_H_
