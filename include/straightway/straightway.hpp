#pragma once
// All of the C++ API.
#include "straightway/context.hpp"
#include "straightway/file.hpp"
namespace sw = straightway;
