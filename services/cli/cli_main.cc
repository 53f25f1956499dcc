// stagecoach: the client, and with `stagecoach local` a whole cluster on one machine.
#include <signal.h>

#include <iostream>

#include "services/cli/command_line.h"
#include "services/cli/console.h"
#include "services/cli/stop_signal.h"

int main(int argc, char** argv) {
  using namespace stagecoach;
  // Before any thread starts, so that only the watcher sees Ctrl-C.
  BlockTerminationSignals();
  signal(SIGPIPE, SIG_IGN);  // `stagecoach ... | head` ends by a failed write, not in the middle
  Console console(std::cout, std::cerr, Console::DetectTerminals());
  StopSignal stop;
  InterruptWatcher interrupts(&stop);
  return RunCommandLine(argc, argv, &console, &stop);
}
