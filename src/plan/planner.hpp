#pragma once
// Request x Facts x Settings -> Plan. Pure: no system call, no clock, no thread.

#include <memory>
#include <string>
#include <vector>

#include "straightway/plan.hpp"

namespace straightway::plan {

struct Facts {
  std::shared_ptr<const FileFacts> file;
  std::shared_ptr<const MachineFacts> machine;
  std::shared_ptr<const PeerFacts> peer;  // of peer memory, else null
  std::vector<FileRange> pinned;          // what pins of the file hold, in order and apart
  bool pin_lost = false;                  // pins of the file were given up
};

// Never fails: a request that cannot be served as asked has Plan::failure set and no runs.
Plan make_plan(const Request& request, const Facts& facts,
               const std::shared_ptr<const Settings>& settings);

// The route-choosing policy of the straightway door; fills plan.runs, refused and failure.
void auto_policy(Plan& plan, const Facts& facts);
// KvikIO's rules; fills plan.front.
void front_layer(Plan& plan);
// cuFile's rules for the requests that reach that layer; fills plan.cufile.
void cufile_layer(Plan& plan);

// One sentence without a full stop: why `route` was taken or refused, in words of these facts.
// "nvidia-fs is not loaded (no /proc/driver/nvidia-fs)"
std::string sentence(Reason reason, Route route, const FileFacts* file, const MachineFacts* machine,
                     const Settings* settings, const PeerFacts* peer = nullptr);

}  // namespace straightway::plan
