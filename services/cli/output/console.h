// Console: the output of a command. Data goes to standard output, notes and progress to standard
// error, so that `stagecoach ... > file` keeps only data.
// Threads:   Note is thread-safe; the rest belongs to the command's thread.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_CONSOLE_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_CONSOLE_H_

#include <functional>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace stagecoach {

enum class OutputFormat { kTable, kJson, kNdjson };

// "table", "json", "ndjson"; nullopt for any other name.
std::optional<OutputFormat> ParseOutputFormat(const std::string& name);

class Console {
 public:
  struct Options {
    bool notes_are_terminal = false;
    // A terminal, and neither NO_COLOR nor TERM=dumb; never in a pipe or file.
    bool out_has_color = false;
    bool notes_have_color = false;
    // Data can no longer be written (`stagecoach watch ... | head`); called at every attempt.
    std::function<void()> on_output_lost = {};
  };
  Console(std::ostream& out, std::ostream& notes, const Options& options)
      : out_(out), notes_(notes), options_(options) {}

  // Options for this process's standard output and error; without on_output_lost.
  static Options DetectTerminals();

  void Print(const std::string& text);  // data, as it is
  void PrintLine(const std::string& line) { Print(line + "\n"); }
  void Note(const std::string& line);  // as base/utf8.h shows it
  // "stagecoach: <message>" as a note, and the exit code for the status.
  int Fail(const absl::Status& status);

  // The progress bar: one line of notes that is drawn over; on terminals only.
  bool has_bar() const { return options_.notes_are_terminal; }
  void DrawBar(const std::string& line);
  void EndBar();        // leaves the last bar standing
  void ClearBar();      // takes it away
  int columns() const;  // of the terminal

  // The state of a job, stage or checkpoint, coloured by its meaning if colours are on. Green:
  // well; blue: at work; yellow: ended or ending by hand; red: lost. Other states stay as they are.
  std::string ColoredState(const std::string& state) const;

 private:
  void WriteNote(const std::string& line);

  std::ostream& out_;
  std::ostream& notes_;
  const Options options_;
  std::mutex mutex_;  // guards notes_ and bar_
  std::string bar_;   // drawn and not ended; empty: none
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_CONSOLE_H_
