// CommandTree: the commands of `stagecoach` with their options, and the function of the one that a
// command line chooses.
// Ownership: owns all options; borrows console and stop signal.
// Threads:   the main thread.
#ifndef STAGECOACH_SERVICES_CLI_COMMAND_TREE_H_
#define STAGECOACH_SERVICES_CLI_COMMAND_TREE_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "services/cli/commands/commands.h"

namespace stagecoach {

class CommandTree {
 public:
  CommandTree(Console* console, StopSignal* stop);

  int Run(int argc, const char* const* argv);  // the exit code

  template <typename Options>
  struct Command {
    CLI::App* app;
    Options& options;  // lives as long as the tree
  };
  // parent: null for the program itself.
  template <typename Options>
  Command<Options> Add(const std::string& name, const std::string& description,
                       int (*run)(const Options&, CommandContext&), CLI::App* parent = nullptr) {
    const auto options = std::make_shared<Options>();
    const auto chosen = [this, options, run] { return run(*options, context_); };
    return {AddChoice(parent, name, description, chosen), *options};
  }
  CLI::App* Add(const std::string& name, const std::string& description,
                int (*run)(CommandContext&), CLI::App* parent = nullptr) {
    return AddChoice(parent, name, description, [this, run] { return run(context_); });
  }

  CLI::App& app() { return app_; }
  CommandContext& context() { return context_; }

 private:
  CLI::App* AddChoice(CLI::App* parent, const std::string& name, const std::string& description,
                      std::function<int()> run);
  void AddSharedOptions();
  void AddConnectionOptions();
  void ChooseClient();
  void AddCompletion();
  int ReportParse(const CLI::ParseError& error);

  CLI::App app_;
  CommandContext context_;
  std::function<int()> run_;
  std::string shell_;
  std::vector<std::string> line_;  // to complete
};

void AddRunCommands(CommandTree& tree);      // run a job, or look at one before it runs
void AddClusterCommands(CommandTree& tree);  // ask a coordinator
void AddWeightCommands(CommandTree& tree);   // use trained weights
void AddScoreCommand(CommandTree& tree);     // compares translations with references
void AddTokenizerCommands(CommandTree& tree);
void AddSetupCommands(CommandTree& tree);  // certificates, and the profile

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMAND_TREE_H_
