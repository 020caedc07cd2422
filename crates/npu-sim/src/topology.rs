//! The places of a mesh of tiles: its size, the tiles of memory and of the host, and the home tile
//! of each address (`docs/machine/several-cores.md`).

use npu_mc::machine;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The maximum number of cores: the upper bits of a barrier id name the tile.
pub const CORE_LIMIT: usize = (machine::BARRIER_IDS / machine::BARRIER_COUNTERS) as usize;

/// The size of a mesh, and the tiles of memory and of the host. Tiles are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    width: u32,
    height: u32,
    memory_tile: u32,
    host_tile: u32,
}

/// Why a mesh is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// The text does not have the form `WIDTHxHEIGHT`.
    Syntax,
    /// The number of tiles is not a power of two from 2 to [`CORE_LIMIT`]: the upper bits of an
    /// address are the number of its home tile.
    Tiles,
    /// The tile of memory or of the host is not in the mesh.
    Outside {
        /// The tile.
        tile: u32,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str("a mesh is WIDTHxHEIGHT, for example 2x2"),
            Self::Tiles => write!(f, "the number of tiles is not a power of two from 2 to {CORE_LIMIT}"),
            Self::Outside { tile } => write!(f, "tile {tile} is not in the mesh"),
        }
    }
}

impl std::error::Error for TopologyError {}

impl Default for Topology {
    /// The mesh as the hardware ships it, from td (`NaplesPUPipeline.td`).
    fn default() -> Self {
        Self {
            width: machine::MESH_WIDTH,
            height: machine::MESH_HEIGHT,
            memory_tile: machine::MEMORY_TILE,
            host_tile: machine::HOST_TILE,
        }
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    /// Parses `WIDTHxHEIGHT`.
    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let (width, height) = text.split_once('x').ok_or(TopologyError::Syntax)?;
        let number = |text: &str| text.parse().map_err(|_| TopologyError::Syntax);
        Self::new(number(width)?, number(height)?)
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl Topology {
    /// Creates a mesh with memory in its last tile, and the host in the tile before.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Tiles`].
    pub fn new(width: u32, height: u32) -> Result<Self, TopologyError> {
        match width.checked_mul(height) {
            Some(tiles) if tiles >= 2 && tiles.is_power_of_two() && tiles as usize <= CORE_LIMIT => Ok(Self {
                width,
                height,
                memory_tile: tiles - 1,
                host_tile: tiles - 2,
            }),
            _ => Err(TopologyError::Tiles),
        }
    }

    /// Returns the same mesh with other tiles for memory and the host.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Outside`].
    pub fn with_places(self, memory_tile: u32, host_tile: u32) -> Result<Self, TopologyError> {
        match [memory_tile, host_tile].into_iter().find(|&tile| tile >= self.tiles()) {
            Some(tile) => Err(TopologyError::Outside { tile }),
            None => Ok(Self {
                memory_tile,
                host_tile,
                ..self
            }),
        }
    }

    /// Returns the number of tiles in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number of tiles, a power of two.
    pub fn tiles(&self) -> u32 {
        self.width * self.height
    }

    /// Returns the tile of memory.
    pub fn memory_tile(&self) -> u32 {
        self.memory_tile
    }

    /// Returns the tile of the host and the console.
    pub fn host_tile(&self) -> u32 {
        self.host_tile
    }

    /// Returns the number of tiles with a core and a sync master, from tile 0 on: half of the tiles,
    /// as in the two meshes that were measured.
    pub fn core_tiles(&self) -> u32 {
        self.tiles() * machine::CORE_TILES / (machine::MESH_WIDTH * machine::MESH_HEIGHT)
    }

    /// Returns the column and the row of a tile. Tile numbers wrap.
    pub(crate) fn place(&self, tile: u32) -> (u32, u32) {
        let tile = tile % self.tiles();
        (tile % self.width, tile / self.width)
    }

    /// Returns the number of hops from one tile to another. Tile numbers wrap.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (self.place(from), self.place(to));
        from.0.abs_diff(to.0) + from.1.abs_diff(to.1)
    }

    /// Returns the home tile of an address: its upper bits.
    pub fn home(&self, address: u32) -> u32 {
        address >> (u32::BITS - self.tiles().ilog2())
    }

    /// Returns the addresses whose home is a tile. There are none for a tile outside of the mesh.
    pub fn addresses_at(&self, tile: u32) -> Range<u64> {
        let bytes = 1u64 << (u32::BITS - self.tiles().ilog2());
        match tile < self.tiles() {
            true => u64::from(tile) * bytes..(u64::from(tile) + 1) * bytes,
            false => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_the_upper_bits_of_addresses() {
        let shipped = Topology::default();
        assert_eq!(Topology::new(4, 4), Ok(shipped));
        assert_eq!(
            (shipped.home(0x5fff_ffff), shipped.addresses_at(5).start),
            (5, 0x5000_0000)
        );
        let small: Topology = "2x2".parse().unwrap();
        assert_eq!((small.memory_tile(), small.host_tile(), small.core_tiles()), (3, 2, 2));
        assert_eq!((small.home(0x7fff_ffff), small.home(0x8000_0000)), (1, 2));
        assert_eq!(small.addresses_at(3), 0xc000_0000..1 << 32);
        assert_eq!(small.addresses_at(4), 0..0);
        assert_eq!((small.hops(0, 3), small.hops(1, 2), small.hops(2, 2)), (2, 2, 0));
    }

    #[test]
    fn impossible_meshes_are_errors() {
        for (text, error) in [
            ("4", TopologyError::Syntax),
            ("4x", TopologyError::Syntax),
            ("-1x4", TopologyError::Syntax),
            ("3x4", TopologyError::Tiles),
            ("1x1", TopologyError::Tiles),
            ("0x4", TopologyError::Tiles),
            ("8x4", TopologyError::Tiles),
            ("65536x65536", TopologyError::Tiles),
        ] {
            assert_eq!(text.parse::<Topology>(), Err(error), "{text}");
        }
        let outside = Topology::default().with_places(16, 0);
        assert_eq!(outside, Err(TopologyError::Outside { tile: 16 }));
    }
}
