// SPDX-License-Identifier: Apache-2.0

// Command bench measures what Ichor promises about its speed, and prints it as ratios between two things that are measured
// in the same run: interleaved rounds, medians. It exits with 1 when a ratio is above its limit. Run it with `make bench`, on
// a machine that does nothing else; tests assert only what does not depend on the machine.
package main
