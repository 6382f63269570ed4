#pragma once
// Ctrl-C and its relatives: noticed, so that what is in flight can drain and what was half done can
// be taken away.

#include <functional>

#include "straightway/file.hpp"

namespace straightway::tools {

// From now on the first SIGINT, SIGTERM or SIGHUP is only noted; a second one ends the process as
// ever. Writing to a closed pipe becomes an ordinary failure.
void notice_interrupts();
// The signal that came, 0 while none did.
int interrupted();
// 128 + signal, as shells count.
int interrupted_exit_code();

// The job's receipt. Calls tick a few times a second; cancels the job when interrupted.
Result<Receipt> wait_for(const Job& job, const std::function<void(const Progress&)>& tick);

}  // namespace straightway::tools
