// SPDX-License-Identifier: Apache-2.0

// Package memory keeps a manager small. Shared gives objects of a cache one copy of the texts and labels that many of them have; Keeper gives
// back to the kernel what a burst of work has needed, and has the garbage collector heed the limit of the container.
//
// It is not pure: it reads the process's own measurements and the files in which the kernel tells of limits. The setup of managers imports it.
package memory
