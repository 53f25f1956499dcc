// DataOutput: data sets as tables, text and JSON.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_CLI_OUTPUT_DATA_OUTPUT_H_
#define STAGECOACH_SERVICES_CLI_OUTPUT_DATA_OUTPUT_H_

#include <string>

#include "services/cli/output/console.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

// "data set faces", or by its id.
std::string DataSetLabel(const v1::DataSet& set);
std::string DataSetTable(const v1::ListDataSetsResponse& sets);
// The set, then its files with their sizes.
std::string DataSetText(const v1::DataSet& set, const v1::DataManifest& manifest);
// The set's message, with "entries": [{"path":"a/1.jpg","bytes":"1234"}].
std::string DataSetJson(const v1::DataSet& set, const v1::DataManifest& manifest,
                        OutputFormat format);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_OUTPUT_DATA_OUTPUT_H_
