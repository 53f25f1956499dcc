// stagecoach: the client, and with `stagecoach local` a whole cluster on one machine.
#include <signal.h>
#include <stdlib.h>

#include <iostream>

#include "services/cli/client/stop_signal.h"
#include "services/cli/command_line.h"
#include "services/cli/output/console.h"

int main(int argc, char** argv) {
  using namespace stagecoach;
  // Before any thread starts, so that only the watcher sees Ctrl-C.
  BlockTerminationSignals();
  // `stagecoach local ... | head` ends in order, with its children, not in the middle of a write.
  signal(SIGPIPE, SIG_IGN);
  // gRPC's own log lines about a failed handshake would come before, and less clear than, our
  // error.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  StopSignal stop;
  Console::Options options = Console::DetectTerminals();
  options.on_output_lost = [&stop] {
    stop.Request(absl::AbortedError("standard output was closed"));
  };
  Console console(std::cout, std::cerr, options);
  InterruptWatcher interrupts(&stop);
  return RunCommandLine(argc, argv, &console, &stop);
}
