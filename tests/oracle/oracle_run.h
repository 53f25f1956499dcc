// stagecoach-oracle run: one step of any network on given weights and data, on K stages in this
// process. Everything that another framework could be compared in is written to a file.
#ifndef STAGECOACH_TESTS_ORACLE_ORACLE_RUN_H_
#define STAGECOACH_TESTS_ORACLE_ORACLE_RUN_H_

namespace stagecoach {

// Exit code of `run`; 2 for a wrong command line, 1 with a message for everything else that is wrong.
int OracleRun(int argc, const char* const* argv);

// `runs`: one run for each line of standard input, which has its arguments, divided by tabs. Answers
// with a line that has the exit code of the run. Returns 0 at the end of the input.
int OracleRuns();

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_ORACLE_ORACLE_RUN_H_
