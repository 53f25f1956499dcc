// stagecoach: the client, and with `stagecoach local` a whole cluster on one machine.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include <cerrno>
#include <iostream>

#include "services/cli/client/stop_signal.h"
#include "services/cli/command_line.h"
#include "services/cli/output/console.h"

// Else the first files that are opened take the places of streams that are closed: `translate <&-` read
// an event of gRPC's.
static void OpenStandardStreams() {
  for (int stream = 0; stream < 3; ++stream) {
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF) open("/dev/null", O_RDWR);
  }
}

#ifndef STAGECOACH_SANITIZED  // sanitizers begin there themselves
// Libraries open files before main.
__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)() = OpenStandardStreams;
#endif

int main(int argc, char** argv) {
  using namespace stagecoach;
  OpenStandardStreams();
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
    stop.Request(absl::AbortedError(
        "standard output could not be written: it is closed, or its disk is full"));
  };
  Console console(std::cout, std::cerr, options);
  InterruptWatcher interrupts(&stop);
  const int code = RunCommandLine(argc, argv, &console, &stop);
  // A full disk took the answer, and the code said success.
  if (std::cout.flush() || code != 0) return code;
  std::cerr << "stagecoach: standard output could not be written whole: it is closed, or its disk "
               "is full\n";
  return 1;
}
