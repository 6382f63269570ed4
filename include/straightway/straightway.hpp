#pragma once
// All of the C++ API.
#include "straightway/context.hpp"
#include "straightway/file.hpp"
#include "straightway/peer.hpp"
namespace sw = straightway;
