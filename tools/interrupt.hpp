#pragma once
// Ctrl-C and its relatives: noticed, so that what is in flight can drain and what was half done can
// be taken away.

#include <functional>

#include "straightway/file.hpp"

namespace straightway::tools {

// A reader that goes away becomes an ordinary failure of the write, from now on.
void ignore_broken_pipes();
// Whether our parent had it so, which programs that we start inherit.
bool broken_pipes_were_ignored();
// From now on the first SIGINT, SIGTERM or SIGHUP is only noted; a second one ends the process as
// ever.
void notice_interrupts();
// The signal that came, 0 while none did.
int interrupted();
// 128 + signal, as shells count.
int interrupted_exit_code();

// The job's receipt. Calls tick a few times a second; cancels the job when interrupted.
Result<Receipt> wait_for(const Job& job, const std::function<void(const Progress&)>& tick);

}  // namespace straightway::tools
