// PictureReport: a command's answers for one picture after the other: a table at the end, or JSON.
// If a picture was not read, it is named at once with its reason, and the exit code tells it.
// Ownership: borrows the console.  Threads: the command's.
// See:       docs/clients.md.
#ifndef STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_REPORT_H_
#define STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "services/cli/output/console.h"
#include "services/cli/output/text.h"
#include "services/cli/pictures/picture_files.h"

namespace stagecoach {

class PictureReport {
 public:
  struct Head {
    std::string weights;               // their place
    std::vector<std::string> columns;  // of the table, behind the picture's
    std::vector<size_t> right;         // columns that are aligned right
  };
  PictureReport(const Head& head, OutputFormat format, Console* console);

  // rows: of the table, without the picture. said: the same for programs, as an object.
  void Add(const PictureFile& file, const std::vector<std::vector<std::string>>& rows,
           const nlohmann::ordered_json& said);
  void Fail(const PictureFile& file, const absl::Status& reason);
  // Prints the rest. all: number of pictures.
  int Finish(size_t all);

 private:
  void Say(nlohmann::ordered_json said);

  const OutputFormat format_;
  Console& console_;
  nlohmann::ordered_json answer_;
  Table table_;
  size_t failed_ = 0, added_ = 0;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_REPORT_H_
